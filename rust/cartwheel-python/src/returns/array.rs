//! NumPy arrays as the core's slices, for the duration of a call.

use cartwheel_engine::returns::{PerStep, Real, TimeMajor};
use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadwriteArray1, PyReadwriteArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Runs a block with a name for the element type of a floating-point array.
macro_rules! with_type_of {
    ($array:expr, $float:ident => $block:expr) => {{
        use numpy::{PyArrayDescrMethods, PyUntypedArrayMethods, dtype};

        let (array, py) = ($array, $array.py());
        if array.dtype().is_equiv_to(&dtype::<f32>(py)) {
            type $float = f32;
            $block
        } else if array.dtype().is_equiv_to(&dtype::<f64>(py)) {
            type $float = f64;
            $block
        } else {
            let text = format!("expected dtype float32 or float64, got {}", array.dtype());
            Err(pyo3::exceptions::PyTypeError::new_err(text))
        }
    }};
}
pub(crate) use with_type_of;

/// An input `[steps, num_envs]`.
pub(crate) struct Input<'py, T: Element>(PyReadonlyArray2<'py, T>);

impl<'py, T: Element> Input<'py, T> {
    /// Borrows `array`, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = array.cast::<PyArray2<T>>().map_err(|_| wrong(what))?;
        check_contiguous(what, array)?;
        Ok(Self(array.try_readonly()?))
    }

    /// The array in the core's form.
    pub(crate) fn time_major(&self) -> PyResult<TimeMajor<'_, T>> {
        let [steps, num_envs] = [self.0.shape()[0], self.0.shape()[1]];
        TimeMajor::new(self.0.as_slice()?, steps, num_envs).map_err(crate::error::returns_error)
    }
}

/// A number for all rows, or one for each row.
pub(crate) enum Numbers<'py, F: Element> {
    Same(f64),
    Each(Input<'py, F>),
}

impl<'py, F: Real + Element> Numbers<'py, F> {
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

/// An output of two dimensions.
pub(crate) struct Output<'py, T: Element>(PyReadwriteArray2<'py, T>);

impl<'py, T: Element> Output<'py, T> {
    /// Borrows `array`, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = array.cast::<PyArray2<T>>().map_err(|_| wrong(what))?;
        check_contiguous(what, array)?;
        Ok(Self(array.try_readwrite()?))
    }

    /// Its cells, step by step.
    pub(crate) fn cells(&mut self) -> PyResult<&mut [T]> {
        Ok(self.0.as_slice_mut()?)
    }
}

/// Borrows a list of numbers or flags.
pub(crate) fn list<'py, T: Element>(
    what: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, T>> {
    let array = array.cast::<PyArray1<T>>().map_err(|_| wrong(what))?;
    check_contiguous(what, array)?;
    Ok(array.try_readonly()?)
}

/// Borrows a list for writing.
pub(crate) fn list_output<'py, T: Element>(
    what: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadwriteArray1<'py, T>> {
    let array = array.cast::<PyArray1<T>>().map_err(|_| wrong(what))?;
    check_contiguous(what, array)?;
    Ok(array.try_readwrite()?)
}

/// A slice of an array is row-major only if the array is: `as_slice` takes a column-major one too.
fn check_contiguous<'py>(what: &str, array: &impl PyUntypedArrayMethods<'py>) -> PyResult<()> {
    if array.is_c_contiguous() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("`{what}` is not C-contiguous")))
}

fn wrong(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "`{what}` is not a NumPy array with the required dtype and dimensions"
    ))
}
