//! Stores rows of batches into time-major arrays; documented in the stub.

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::dtype::{from_descr, is};
use crate::array::{copy_numbers, is_writable, scatter};

#[pyfunction]
#[pyo3(signature = (leaves, steps, rows, /))]
pub(crate) fn store(
    leaves: Vec<Bound<'_, PyAny>>,
    steps: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // Reading the arguments may run Python code, so all are read before any is checked.
    let leaves = leaves.iter().enumerate().map(|(number, leaf)| Leaf::new(number, leaf));
    let leaves = leaves.collect::<PyResult<Vec<_>>>()?;
    let (steps, rows) = (indexes("steps", steps)?, indexes("rows", rows)?);
    if steps.len() != rows.len() {
        let text = format!(
            "`steps` and `rows` must have the same length, got {} and {}",
            steps.len(),
            rows.len()
        );
        return Err(PyValueError::new_err(text));
    }
    for leaf in &leaves {
        leaf.check(&steps, &rows)?;
    }
    for leaf in &leaves {
        leaf.store(&steps, &rows);
    }
    Ok(())
}

/// The steps, or the rows, of the entries.
fn indexes(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wrong = |got: String| {
        let text = format!("`{what}` must be a C-contiguous array of int64, got {got}");
        PyTypeError::new_err(text)
    };
    let Ok(array) = value.cast::<PyUntypedArray>() else {
        return Err(wrong(value.get_type().to_string()));
    };
    let is_list = array.ndim() == 1 && array.is_c_contiguous();
    if !is_list || !is(&array.dtype(), DType::I64) {
        let strides = array.strides();
        let (dtype, shape) = (array.dtype(), array.shape());
        return Err(wrong(format!("{dtype}, shape {shape:?}, strides {strides:?}")));
    }
    let mut numbers = Vec::new();
    copy_numbers(array, &mut numbers);
    Ok(numbers)
}

/// An array of rows, and the array `[steps, num_envs, …]` into which they are stored.
struct Leaf<'py> {
    number: usize,
    source: Bound<'py, PyUntypedArray>,
    destination: Bound<'py, PyUntypedArray>,
    /// Is added to each step.
    offset: i64,
}

impl<'py> Leaf<'py> {
    fn new(number: usize, leaf: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (source, destination, offset) = leaf.extract().map_err(|error| {
            PyTypeError::new_err(format!(
                "leaf {number} must be a tuple of a source array, a destination array and an \
                 int64 offset: {error}"
            ))
        })?;
        Ok(Self { number, source, destination, offset })
    }

    /// Checks dtypes, shapes, memory and indexes.
    fn check(&self, steps: &[i64], rows: &[i64]) -> PyResult<()> {
        let Self { number, source, destination, .. } = self;
        let (from, into) = (source.dtype(), destination.dtype());
        if from_descr(&from).is_none_or(|dtype| !is(&into, dtype)) {
            return Err(PyTypeError::new_err(format!(
                "leaf {number} must have one dtype of numbers or flags, got {from} in the source \
                 and {into} in the destination"
            )));
        }
        let wrong = |text| Err(PyValueError::new_err(text));
        let (from, into) = (source.shape(), destination.shape());
        if from.first() != Some(&rows.len()) || into.len() < 2 || from[1..] != into[2..] {
            return wrong(format!(
                "leaf {number} must have shapes [{}, *shape] in the source and \
                 [steps, num_envs, *shape] in the destination, got {from:?} and {into:?}",
                rows.len()
            ));
        }
        for (what, array) in [("source", source), ("destination", destination)] {
            if !array.is_c_contiguous() {
                let strides = array.strides();
                return wrong(format!(
                    "the {what} of leaf {number} is not C-contiguous: strides {strides:?}"
                ));
            }
        }
        if !is_writable(destination) {
            return wrong(format!("the destination of leaf {number} is read-only"));
        }
        let (num_steps, num_envs) = (into[0], into[1]);
        for (entry, (&step, &row)) in steps.iter().zip(rows).enumerate() {
            let found = step.checked_add(self.offset).and_then(|step| usize::try_from(step).ok());
            let axis = if found.is_none_or(|step| step >= num_steps) {
                format!("step {step} with offset {} is not one of {num_steps} steps", self.offset)
            } else if usize::try_from(row).is_ok_and(|row| row < num_envs) {
                continue;
            } else {
                format!("row {row} is not one of {num_envs} rows")
            };
            let text = format!("{axis} in the destination of leaf {number} (at position {entry})");
            return Err(PyIndexError::new_err(text));
        }
        Ok(())
    }

    /// Copies the rows; they have been checked.
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "were checked")]
    fn store(&self, steps: &[i64], rows: &[i64]) {
        let num_envs = self.destination.shape()[1];
        let cells = steps.iter().zip(rows);
        let cells =
            cells.map(|(step, row)| (step + self.offset) as usize * num_envs + *row as usize);
        scatter(&self.source, &self.destination, cells);
    }
}
