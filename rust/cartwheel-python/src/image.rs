//! Plans for images on NumPy arrays; documented in the stub.

use std::num::NonZero;

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_engine::space::DType;
use cartwheel_kernels::image::{Error, Plan, Shape};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Borrowed, as_contiguous, dtype, filled};

/// A plan, and the shapes of the arrays.
#[pyclass(frozen, name = "ImagePlan", module = "cartwheel._cartwheel")]
pub(crate) struct PyImagePlan {
    plan: Plan,
    /// The shape of a frame as an array.
    frame: Vec<usize>,
    /// The shape of an image as an array.
    image: Vec<usize>,
    num_threads: Option<NonZero<usize>>,
}

#[pymethods]
impl PyImagePlan {
    #[new]
    #[pyo3(signature = (height, width, channels, *, out_height, out_width, gray, channel_first=false, num_threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a class of Python")]
    fn new(
        height: usize,
        width: usize,
        channels: Option<usize>,
        out_height: usize,
        out_width: usize,
        gray: bool,
        channel_first: bool,
        num_threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let shape = Shape { height, width, channels: channels.unwrap_or(1) };
        let plan =
            with_standard_floats(|| Plan::new(shape, [out_height, out_width], gray, channel_first));
        let plan = plan.map_err(image_error)?;
        let mut image = vec![out_height, out_width];
        if !gray && let Some(channels) = channels {
            image.insert(if channel_first { 0 } else { 2 }, channels);
        }
        let frame = [height, width].into_iter().chain(channels).collect();
        Ok(Self { plan, frame, image, num_threads })
    }

    #[pyo3(signature = (frames, second=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        frames: &Bound<'py, PyUntypedArray>,
        second: Option<&Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let frames = self.borrow("frames", frames)?;
        let second = second.map(|second| self.borrow("second", second)).transpose()?;
        let rows = frames.shape()[0];
        if let Some(got) = second.as_ref().map(|second| second.shape()[0])
            && got != rows
        {
            let error = Error::WrongCount { what: "second", expected: rows, got };
            return Err(image_error(error));
        }
        let (bytes, second) = (frames.cells()?, second.as_ref().map(Borrowed::cells).transpose()?);
        let mut result = Ok(());
        let images = filled(py, DType::U8, Some(rows), &self.image, |out| {
            let mut run = || self.plan.run(bytes, second, self.num_threads, out);
            result = py.detach(|| with_standard_floats(&mut run));
        })?;
        result.map_err(image_error)?;
        Ok(images)
    }
}

impl PyImagePlan {
    /// Borrows an array of frames, which `what` names in errors; a copy where its memory is not
    /// row-major.
    fn borrow<'py>(
        &self,
        what: &str,
        array: &Bound<'py, PyUntypedArray>,
    ) -> PyResult<Borrowed<'py, u8>> {
        if !dtype::is(&array.dtype(), DType::U8) {
            let text = format!("`{what}` must have dtype uint8, got {}", array.dtype());
            return Err(PyTypeError::new_err(text));
        }
        if array.ndim() == 0 || array.shape()[1..] != self.frame {
            let text = format!(
                "`{what}` must have shape (N, {}), got {}",
                listed(&self.frame),
                array.as_any().getattr("shape")?
            );
            return Err(PyValueError::new_err(text));
        }
        let array = as_contiguous(array, DType::U8)?;
        Borrowed::new(what, &array, array.ndim())
    }
}

fn listed(shape: &[usize]) -> String {
    let numbers: Vec<_> = shape.iter().map(ToString::to_string).collect();
    numbers.join(", ")
}

/// The exception for wrong arguments of a plan.
fn image_error(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
