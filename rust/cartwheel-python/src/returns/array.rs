//! NumPy arrays as the core's slices, for the duration of a call.

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_kernels::returns::{Float, PerStep, TimeMajor};
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::array::{Borrowed, Number};

/// Runs a block with a name for the element type of a floating-point array.
macro_rules! with_type_of {
    ($array:expr, $float:ident => $block:expr) => {{
        use cartwheel_engine::space::DType;
        use numpy::PyUntypedArrayMethods;

        let dtype = $array.dtype();
        if crate::array::dtype::is(&dtype, DType::F32) {
            type $float = f32;
            $block
        } else if crate::array::dtype::is(&dtype, DType::F64) {
            type $float = f64;
            $block
        } else {
            let text = format!("expected dtype float32 or float64, got {dtype}");
            Err(pyo3::exceptions::PyTypeError::new_err(text))
        }
    }};
}
pub(crate) use with_type_of;

/// Computes detached, in the standard mode of floats; threads that are started get it, too.
pub(crate) fn detached<T: Send>(py: Python<'_>, compute: impl FnOnce() -> T + Send) -> T {
    py.detach(|| with_standard_floats(compute))
}

/// An input `[steps, num_envs]`.
pub(crate) struct Input<'py, T: Number>(Borrowed<'py, T>);

impl<'py, T: Number> Input<'py, T> {
    /// Borrows `array`, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Borrowed::new(what, array, 2).map(Self)
    }

    /// The array in the core's form.
    pub(crate) fn time_major(&self) -> PyResult<TimeMajor<'_, T>> {
        let [steps, num_envs] = [self.0.shape()[0], self.0.shape()[1]];
        TimeMajor::new(self.0.cells()?, steps, num_envs).map_err(crate::error::returns_error)
    }
}

impl<'py> Input<'py, u8> {
    pub(crate) fn flags(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Borrowed::flags(what, array, 2).map(Self)
    }
}

/// A number for all rows, or one for each row.
pub(crate) enum Numbers<'py, F: Number> {
    Same(f64),
    Each(Input<'py, F>),
}

impl<'py, F: Float + Number> Numbers<'py, F> {
    /// A Python float, or an array.
    pub(crate) fn new(what: &str, numbers: &Bound<'py, PyAny>) -> PyResult<Self> {
        // Arrays first: Python converts an array of a single element to a float.
        if numbers.cast::<PyUntypedArray>().is_ok() {
            return Input::new(what, numbers).map(Self::Each);
        }
        Ok(Self::Same(numbers.extract()?))
    }

    /// The numbers in the core's form.
    pub(crate) fn per_step(&self) -> PyResult<PerStep<'_, F>> {
        Ok(match self {
            Self::Same(number) => PerStep::Same(*number),
            Self::Each(array) => PerStep::Each(array.time_major()?),
        })
    }
}
