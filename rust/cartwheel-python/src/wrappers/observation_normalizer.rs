//! Observations with mean 0 and variance 1; documented in the stub.
//!
//! # Invariants
//!
//! 1. `normalize_all` and `write_shown` of `ObservationNormalizer` write every byte of their buffers. Its
//!    tests compare all of them.
#![expect(unsafe_code, reason = "observations are written into new arrays, see the invariants")]

use std::mem::MaybeUninit;

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{Moments, ObservationNormalizer, Places, limit_to};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use super::column::RowValues;
use super::locked::Locked;
use super::places::{Ended, EndedArrays, EndedLists, PlaceColumns, WithFinals};
use crate::array::{Blocks, Number, as_array, as_contiguous, dtype, from_numbers};
use crate::convert::to_autoreset_mode;

/// Mean, variance, count, and what each environment last showed.
type NormalizerState<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, f64, Bound<'py, PyAny>);

/// Buffers for the numbers of a batch.
#[derive(Debug, Default)]
struct Scratch<T> {
    observations: Vec<T>,
    finals: Vec<T>,
    gathered: Vec<T>,
}

/// The buffers for each type of numbers.
#[derive(Debug, Default)]
struct Scratches {
    single: Scratch<f32>,
    double: Scratch<f64>,
}

/// The parts that change from batch to batch.
#[derive(Debug)]
struct ObservationNormalizerState {
    normalizer: ObservationNormalizer,
    scratches: Scratches,
    /// The last batch was one whose observations all count: what it shows is not written yet, and
    /// follows from the observations of this type.
    behind: Option<DType>,
    /// Normalized final observations.
    normalized: Vec<f32>,
}

#[pyclass(frozen, name = "ObservationNormalizer", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyObservationNormalizer {
    num_envs: usize,
    shape: Vec<usize>,
    columns: usize,
    state: Locked<ObservationNormalizerState>,
}

impl ObservationNormalizerState {
    /// Writes what the environments showed last, unless it was written.
    fn catch_up(&mut self) {
        let Self { normalizer, scratches, behind, .. } = self;
        match behind.take() {
            Some(f32::DTYPE) => {
                with_standard_floats(|| normalizer.show(&scratches.single.observations));
            }
            Some(_) => with_standard_floats(|| normalizer.show(&scratches.double.observations)),
            None => {}
        }
    }
}

/// One of the two types of numbers that are read; others are cast to one of them.
trait NormalizedFloat: Number + Into<f64> {
    fn scratch(scratches: &mut Scratches) -> &mut Scratch<Self>;
}

impl NormalizedFloat for f32 {
    fn scratch(scratches: &mut Scratches) -> &mut Scratch<Self> {
        &mut scratches.single
    }
}

impl NormalizedFloat for f64 {
    fn scratch(scratches: &mut Scratches) -> &mut Scratch<Self> {
        &mut scratches.double
    }
}

impl PyObservationNormalizer {
    fn normalize_as<'py, T: NormalizedFloat>(
        &self,
        py: Python<'py>,
        places: Places<'_>,
        observations: &Bound<'py, PyAny>,
        ended: Ended<'_, 'py>,
        limit: Option<f32>,
        blocks: &mut Blocks,
    ) -> PyResult<WithFinals<'py>> {
        let count = places.len();
        let given = RowValues::new("observations", observations, T::DTYPE, count, &self.shape)?;
        let given = given.into_numbers::<T>()?;
        let (ends, last) = (ended.places, ended.rows(T::DTYPE, &self.shape)?);
        let counts_all = self.state.lock(py).normalizer.counts_all(places, ends);
        if counts_all {
            let write = |buffer: &mut [MaybeUninit<u8>]| {
                let ObservationNormalizerState { normalizer, scratches, behind, .. } =
                    &mut *self.state.lock(py);
                let (given, Scratch { observations, .. }) = (given.cells(), T::scratch(scratches));
                observations.resize(given.len(), T::default());
                with_standard_floats(|| {
                    normalizer.normalize_all(given, observations, limit, buffer);
                });
                *behind = Some(T::DTYPE);
            };
            // SAFETY: `normalize_all` writes every byte (invariant 1).
            let shown = unsafe { blocks.written(py, f32::DTYPE, count, &self.shape, write) }?;
            return Ok((shown, py.None().into_bound(py)));
        }
        let mut out = Vec::new();
        let write = |buffer: &mut [MaybeUninit<u8>]| {
            let state = &mut *self.state.lock(py);
            state.catch_up();
            out = std::mem::take(&mut state.normalized);
            let (normalizer, scratch) = (&mut state.normalizer, T::scratch(&mut state.scratches));
            let (observations, Scratch { finals, gathered, .. }) = (given.cells(), scratch);
            finals.clear();
            if let Some(last) = &last {
                last.copy_numbers_to(finals);
            }
            out.resize(finals.len(), 0.0);
            with_standard_floats(|| {
                normalizer.normalize(places, observations, ends, finals, &mut out, gathered);
            });
            normalizer.write_shown(places, limit, buffer);
            limit_to(limit, &mut out);
        };
        // SAFETY: `write_shown` writes every byte (invariant 1).
        let shown = unsafe { blocks.written(py, f32::DTYPE, count, &self.shape, write) }?;
        let last = if ends.is_empty() {
            py.None().into_bound(py)
        } else {
            from_numbers(py, ends.num_finals(), &self.shape, &out)?
        };
        self.state.lock(py).normalized = out; // its memory is used again
        Ok((shown, last))
    }

    /// The normalized observations of a batch, and the final ones, within the limit, if there is one.
    pub(super) fn normalized<'py>(
        &self,
        py: Python<'py>,
        places: Places<'_>,
        observations: &Bound<'py, PyAny>,
        ended: Ended<'_, 'py>,
        limit: Option<f32>,
        blocks: &mut Blocks,
    ) -> PyResult<WithFinals<'py>> {
        let observations = as_array(observations)?;
        let (found, any) = (observations.dtype(), observations.as_any());
        // float32 has every value of the small types.
        if dtype::is(&found, f32::DTYPE)
            || dtype::from_descr(&found).is_some_and(|it| it.size() <= 2)
        {
            self.normalize_as::<f32>(py, places, any, ended, limit, blocks)
        } else {
            self.normalize_as::<f64>(py, places, any, ended, limit, blocks)
        }
    }
}

#[pymethods]
impl PyObservationNormalizer {
    #[new]
    fn new(
        num_envs: usize,
        shape: Vec<usize>,
        epsilon: f64,
        autoreset_mode: &str,
    ) -> PyResult<Self> {
        let columns = shape.iter().product();
        let mode = to_autoreset_mode(autoreset_mode)?;
        let normalizer = ObservationNormalizer::new(num_envs, columns, epsilon, mode);
        let state = Locked::new(ObservationNormalizerState {
            normalizer,
            scratches: Scratches::default(),
            behind: None,
            normalized: Vec::new(),
        });
        Ok(Self { num_envs, shape, columns, state })
    }

    #[getter]
    fn epsilon(&self, py: Python<'_>) -> f64 {
        self.state.lock(py).normalizer.epsilon
    }

    #[setter]
    fn set_epsilon(&self, py: Python<'_>, epsilon: f64) {
        self.state.lock(py).normalizer.epsilon = epsilon;
    }

    #[getter]
    fn updates(&self, py: Python<'_>) -> bool {
        self.state.lock(py).normalizer.updates
    }

    #[setter]
    fn set_updates(&self, py: Python<'_>, updates: bool) {
        self.state.lock(py).normalizer.updates = updates;
    }

    #[pyo3(signature = (rows, kinds, observations, ended, /))]
    fn normalize<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
        kinds: &Bound<'py, PyAny>,
        observations: &Bound<'py, PyAny>,
        ended: Option<EndedArrays<'py>>,
    ) -> PyResult<WithFinals<'py>> {
        let columns = PlaceColumns::new(rows, kinds, self.num_envs)?;
        let (mut kinds, lists) = (Vec::new(), EndedLists::new(ended.as_ref())?);
        let (places, blocks) = (columns.read(&mut kinds), &mut Blocks::default());
        let ended = lists.ended(places.len())?;
        self.normalized(py, places, observations, ended, None, blocks)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<NormalizerState<'py>> {
        let (moments, shown) = {
            let mut work = self.state.lock(py);
            work.catch_up();
            (work.normalizer.moments.clone(), work.normalizer.shown.clone())
        };
        let array = |numbers: &[f64]| {
            from_numbers(py, 1, &self.shape, numbers)?.get_item(0)?.call_method0("copy")
        };
        let shown = from_numbers(py, self.num_envs, &self.shape, &shown)?;
        Ok((array(&moments.mean)?, array(&moments.variance)?, moments.count, shown))
    }

    #[pyo3(signature = (mean, variance, count, shown, /))]
    fn set_state(
        &self,
        mean: &Bound<'_, PyAny>,
        variance: &Bound<'_, PyAny>,
        count: f64,
        shown: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let read = |what: &str, value: &Bound<'_, PyAny>| {
            let one = as_contiguous(value, f64::DTYPE)?.call_method1("reshape", ((1, -1),))?;
            let mut numbers = Vec::new();
            RowValues::new(what, &one, f64::DTYPE, 1, &[self.columns])?
                .copy_numbers_to(&mut numbers);
            PyResult::Ok(numbers)
        };
        let moments =
            Moments { mean: read("mean", mean)?, variance: read("var", variance)?, count };
        let mut rows = Vec::new();
        RowValues::new("shown", shown, f32::DTYPE, self.num_envs, &self.shape)?
            .copy_numbers_to(&mut rows);
        let ObservationNormalizerState { normalizer, behind, .. } =
            &mut *self.state.lock(mean.py());
        normalizer.moments = moments;
        normalizer.shown = rows;
        *behind = None;
        Ok(())
    }
}
