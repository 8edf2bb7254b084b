//! The parts of a batch that episodes are counted from, in Rust's types.

use cartwheel_engine::space::DType;
use cartwheel_engine::wrappers::{At, NoSuchRow, Places};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use super::column::{Column, as_contiguous, numbers};
use crate::array::{Number, copy_numbers, filled, from_numbers};

/// Room for the parts of a batch, reused by every batch.
#[derive(Debug, Default)]
pub(super) struct Received {
    rows: Option<Vec<usize>>,
    kinds: Vec<u8>,
    rewards: Vec<f64>,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
}

/// The arrays of a step, as Python passes them: rows, kinds, rewards, terminations, truncations.
pub(super) type StepArrays<'py> = (
    Option<Bound<'py, PyAny>>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);

/// The arrays of a step as columns, before any room is locked: making them may run Python code.
pub(super) struct StepColumns<'py> {
    rows: Option<Vec<usize>>,
    kinds: Column<'py>,
    rewards: Bound<'py, numpy::PyUntypedArray>,
    terminations: Column<'py>,
    truncations: Column<'py>,
}

impl<'py> StepColumns<'py> {
    /// Checks the arrays of a step of `num_envs` rows.
    pub(super) fn new(arrays: &StepArrays<'py>, num_envs: usize) -> PyResult<Self> {
        let (rows, kinds, rewards, terminations, truncations) = arrays;
        let (rows, kinds) = rows_and_kinds(rows.as_ref(), kinds, num_envs)?;
        let rewards = as_contiguous(rewards, DType::F64)?;
        if rewards.shape() != [kinds.len()] {
            let (expected, got) = (kinds.len(), rewards.shape());
            let text = format!("`rewards` must have shape ({expected},), got {got:?}");
            return Err(PyValueError::new_err(text));
        }
        let terminations = Column::of_flags("terminations", terminations)?;
        terminations.check_len("terminations", kinds.len())?;
        let truncations = Column::of_flags("truncations", truncations)?;
        truncations.check_len("truncations", kinds.len())?;
        Ok(Self { rows, kinds, rewards, terminations, truncations })
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }
}

impl Received {
    /// Copies a step.
    pub(super) fn receive(&mut self, columns: StepColumns<'_>) -> Places<'_> {
        let StepColumns { rows, kinds, rewards, terminations, truncations } = columns;
        self.rows = rows;
        kinds.copy_to(&mut self.kinds);
        copy_numbers(&rewards, &mut self.rewards);
        terminations.copy_to(&mut self.terminations);
        truncations.copy_to(&mut self.truncations);
        Places {
            rows: self.rows.as_deref(),
            kinds: &self.kinds,
            rewards: &self.rewards,
            terminations: &self.terminations,
            truncations: &self.truncations,
        }
    }
}

/// The rows and kinds of the places of a batch.
pub(super) fn rows_and_kinds<'py>(
    rows: Option<&Bound<'py, PyAny>>,
    kinds: &Bound<'py, PyAny>,
    num_envs: usize,
) -> PyResult<(Option<Vec<usize>>, Column<'py>)> {
    let rows = rows.map(|rows| existing(&numbers(rows)?, num_envs)).transpose()?;
    let kinds = Column::of_kinds(kinds)?;
    kinds.check_len("kinds", rows.as_ref().map_or(num_envs, Vec::len))?;
    Ok((rows, kinds))
}

/// Row numbers as indices.
fn existing(rows: &[i64], num_envs: usize) -> PyResult<Vec<usize>> {
    let exists = |(place, &row): (usize, &i64)| match usize::try_from(row) {
        Ok(index) if index < num_envs => Ok(index),
        _ => Err(PyIndexError::new_err(NoSuchRow { row, place, num_envs }.to_string())),
    };
    rows.iter().enumerate().map(exists).collect()
}

/// A number of 8 bytes.
pub(super) trait Eight: Number {
    /// Its bytes.
    fn bytes(self) -> [u8; 8];
}

impl Eight for f64 {
    fn bytes(self) -> [u8; 8] {
        self.to_ne_bytes()
    }
}

impl Eight for i64 {
    fn bytes(self) -> [u8; 8] {
        self.to_ne_bytes()
    }
}

/// A new array of numbers.
pub(super) fn column<T: Eight>(
    py: Python<'_>,
    numbers: impl ExactSizeIterator<Item = T>,
) -> PyResult<Bound<'_, PyAny>> {
    filled(py, T::DTYPE, Some(numbers.len()), &[], |room| {
        let room = room.as_chunks_mut().0.iter_mut();
        room.zip(numbers).for_each(|(place, number)| *place = number.bytes());
    })
}

/// A new array with the number of each place, from one of each row.
pub(super) fn column_of<'py, T: Eight>(
    py: Python<'py>,
    rows: Option<&[usize]>,
    of_rows: &[T],
) -> PyResult<Bound<'py, PyAny>> {
    match rows {
        None => from_numbers(py, of_rows.len(), &[], of_rows),
        Some(rows) => column(py, rows.iter().map(|&row| of_rows[row])),
    }
}

/// A new array with numbers at the places where episodes ended, and zeros elsewhere.
pub(super) fn sparse<'py, T: Eight>(
    py: Python<'py>,
    places: usize,
    ended: &[At],
    number: impl Fn(usize) -> T,
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, T::DTYPE, Some(places), &[], |room| {
        let room = room.as_chunks_mut().0;
        for at in ended {
            room[at.place] = number(at.row).bytes();
        }
    })
}

/// A new array with flags at the places where episodes ended, false elsewhere.
pub(super) fn sparse_flags<'py>(
    py: Python<'py>,
    places: usize,
    ended: &[At],
    flag: impl Fn(usize) -> u8,
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, DType::Bool, Some(places), &[], |room| {
        for at in ended {
            room[at.place] = flag(at.row);
        }
    })
}

/// A new array of flags, one for each place.
pub(super) fn flags<'py>(
    py: Python<'py>,
    rows: Option<&[usize]>,
    of_rows: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let places = rows.map_or(of_rows.len(), <[usize]>::len);
    filled(py, DType::Bool, Some(places), &[], |room| match rows {
        None => room.copy_from_slice(of_rows),
        Some(rows) => room.iter_mut().zip(rows).for_each(|(place, &row)| *place = of_rows[row]),
    })
}
