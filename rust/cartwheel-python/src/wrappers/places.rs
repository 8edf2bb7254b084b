//! The parts of a batch in Rust's types.

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{At, EndedPlaces, Places, StepResults, existing_rows};
use pyo3::prelude::*;

use super::column::{Column, RowValues, no_such_row, numbers};
use crate::array::filled;

/// Buffers for the parts of a batch, reused by every batch.
#[derive(Debug, Default)]
pub(super) struct Received {
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

/// The places of a batch, before any buffer is locked: reading Python's arrays may run Python code.
pub(super) struct PlaceColumns<'py> {
    num_envs: usize,
    rows: Option<Vec<usize>>,
    kinds: Column<'py>,
}

impl<'py> PlaceColumns<'py> {
    /// Checks the rows and kinds of the places of a batch of `num_envs` environments.
    pub(super) fn new(
        rows: Option<&Bound<'py, PyAny>>,
        kinds: &Bound<'py, PyAny>,
        num_envs: usize,
    ) -> PyResult<Self> {
        let existing = |rows| existing_rows(numbers(rows)?, num_envs).map_err(no_such_row);
        let rows = rows.map(existing).transpose()?;
        let kinds = Column::kinds(kinds, rows.as_ref().map_or(num_envs, Vec::len))?;
        Ok(Self { num_envs, rows, kinds })
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The places; `kinds` becomes their kinds.
    pub(super) fn read<'a>(&'a self, kinds: &'a mut Vec<u8>) -> Places<'a> {
        self.kinds.copy_to(kinds);
        Places::new(self.rows.as_deref(), kinds, self.num_envs)
    }
}

/// The arrays of a step, before any buffer is locked.
pub(super) struct StepColumns<'py> {
    places: PlaceColumns<'py>,
    rewards: RowValues<'py>,
    terminations: Column<'py>,
    truncations: Column<'py>,
}

impl<'py> StepColumns<'py> {
    /// Checks the arrays of a step of `num_envs` rows.
    pub(super) fn new(arrays: &StepArrays<'py>, num_envs: usize) -> PyResult<Self> {
        let (rows, kinds, rewards, terminations, truncations) = arrays;
        let places = PlaceColumns::new(rows.as_ref(), kinds, num_envs)?;
        let count = places.len();
        let rewards = RowValues::new("rewards", rewards, DType::F64, count, &[])?;
        let terminations = Column::flags("terminations", terminations, count)?;
        let truncations = Column::flags("truncations", truncations, count)?;
        Ok(Self { places, rewards, terminations, truncations })
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

impl Received {
    /// Copies a step.
    pub(super) fn receive<'a>(&'a mut self, columns: &'a StepColumns<'_>) -> StepResults<'a> {
        columns.rewards.copy_numbers_to(&mut self.rewards);
        columns.terminations.copy_to(&mut self.terminations);
        columns.truncations.copy_to(&mut self.truncations);
        StepResults {
            places: columns.places.read(&mut self.kinds),
            rewards: &self.rewards,
            terminations: &self.terminations,
            truncations: &self.truncations,
        }
    }
}

/// Places that ended an episode, those whose final observations are known, and these, as Python
/// passes them.
pub(super) type EndedArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// An array, and the final observations that belong to it.
pub(super) type WithFinals<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The contents of [`EndedArrays`], with the places in lists.
#[derive(Default)]
pub(super) struct EndedLists<'a, 'py> {
    places: Vec<i64>,
    known: Vec<i64>,
    finals: Option<&'a Bound<'py, PyAny>>,
}

impl<'a, 'py> EndedLists<'a, 'py> {
    pub(super) fn new(arrays: Option<&'a EndedArrays<'py>>) -> PyResult<Self> {
        let Some((places, known, finals)) = arrays else { return Ok(Self::default()) };
        Ok(Self { places: numbers(places)?, known: numbers(known)?, finals: Some(finals) })
    }

    /// The same, checked, of a batch of `count` places.
    pub(super) fn ended(&self, count: usize) -> PyResult<Ended<'_, 'py>> {
        let places = EndedPlaces::new(&self.places, &self.known, count).map_err(no_such_row)?;
        Ok(Ended { places, finals: self.finals })
    }
}

/// The places at which episodes ended in a batch, and their final observations.
#[derive(Default, Clone, Copy)]
pub(super) struct Ended<'a, 'py> {
    pub(super) places: EndedPlaces<'a>,
    /// `None`: no final observation is known, or the batch is not one of a step.
    pub(super) finals: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Ended<'_, 'py> {
    /// The final observations, checked: of `dtype`, and each of `shape`.
    pub(super) fn rows(&self, dtype: DType, shape: &[usize]) -> PyResult<Option<RowValues<'py>>> {
        let count = self.places.num_finals();
        self.finals.map(|rows| RowValues::new("finals", rows, dtype, count, shape)).transpose()
    }
}

/// A new array with numbers at the places where episodes ended, and zeros elsewhere.
pub(super) fn sparse<'py>(
    py: Python<'py>,
    dtype: DType,
    places: usize,
    ended: &[At],
    number: impl Fn(usize) -> [u8; 8],
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, dtype, Some(places), &[], |buffer| {
        let buffer = buffer.as_chunks_mut().0;
        for at in ended {
            buffer[at.place] = number(at.row);
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
    filled(py, DType::Bool, Some(places), &[], |buffer| {
        for at in ended {
            buffer[at.place] = flag(at.row);
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
    filled(py, DType::Bool, Some(places), &[], |buffer| match rows {
        None => buffer.copy_from_slice(of_rows),
        Some(rows) => buffer.iter_mut().zip(rows).for_each(|(place, &row)| *place = of_rows[row]),
    })
}
