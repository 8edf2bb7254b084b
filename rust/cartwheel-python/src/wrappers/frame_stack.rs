//! The last frames of each environment; documented in the stub.
//!
//! # Invariants
//!
//! 1. `FrameStack::advance` and `FrameStack::write_all` of `cartwheel-kernels` write every byte of the
//!    buffers for stacks. Its tests fill buffers with another byte first.
#![expect(unsafe_code, reason = "stacks are written into new arrays, see the invariants")]

use std::mem::MaybeUninit;

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{FrameStack, Padding, Places};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::column::RowValues;
use super::locked::Locked;
use super::places::{Ended, EndedArrays, EndedLists, PlaceColumns, WithFinals};
use crate::array::{Blocks, as_array, copy_bytes, dtype, written};

/// The parts that change from batch to batch.
#[derive(Debug)]
struct FrameStackState {
    stacks: FrameStack,
    finals: Vec<u8>,
}

#[pyclass(frozen, name = "FrameStack", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyFrameStack {
    num_envs: usize,
    dtype: DType,
    /// The shape of a frame, and of a stack.
    frame: Vec<usize>,
    stack: Vec<usize>,
    state: Locked<FrameStackState>,
}

impl PyFrameStack {
    /// Advances the stacks of a batch; returns them, and the final ones.
    pub(super) fn stacked<'py>(
        &self,
        py: Python<'py>,
        places: Places<'_>,
        frames: &Bound<'py, PyAny>,
        ended: Ended<'_, 'py>,
        blocks: &mut Blocks,
    ) -> PyResult<WithFinals<'py>> {
        let count = places.len();
        let frames = RowValues::new("observations", frames, self.dtype, count, &self.frame)?;
        let (ends, finals) = (ended.places, ended.rows(self.dtype, &self.frame)?);
        let mut last = None;
        let fill = |buffer: &mut [MaybeUninit<u8>]| {
            let FrameStackState { stacks, finals: given } = &mut *self.state.lock(py);
            given.clear();
            if let Some(finals) = &finals {
                finals.copy_bytes_to(ends.num_finals() * stacks.frame_bytes(), given);
            }
            let mut advance = |final_room: &mut [MaybeUninit<u8>]| {
                let read = |buffer: &mut [u8]| frames.read(buffer);
                stacks.advance(places, read, ends, given, buffer, final_room);
            };
            if finals.is_some() {
                let count = Some(ends.num_finals());
                // SAFETY: `advance` writes every byte (invariant 1).
                last = Some(unsafe { written(py, self.dtype, count, &self.stack, advance) });
            } else {
                advance(&mut []);
            }
        };
        // SAFETY: `fill` runs `advance`, which writes every byte (invariant 1), or returns no array.
        let shown = unsafe { blocks.written(py, self.dtype, count, &self.stack, fill) }?;
        Ok((shown, last.transpose()?.unwrap_or_else(|| py.None().into_bound(py))))
    }
}

#[pymethods]
impl PyFrameStack {
    #[new]
    #[pyo3(signature = (num_envs, depth, padding, *, repeats))]
    fn new(
        num_envs: usize,
        depth: usize,
        padding: &Bound<'_, PyAny>,
        repeats: bool,
    ) -> PyResult<Self> {
        if depth == 0 {
            return Err(PyValueError::new_err("a stack has at least one frame, got 0"));
        }
        let padding = as_array(padding)?;
        let dtype = dtype::from_descr(&padding.dtype()).ok_or_else(|| {
            PyTypeError::new_err(format!("cannot stack elements of dtype {}", padding.dtype()))
        })?;
        let frame = padding.shape().to_vec();
        let stack = std::iter::once(depth).chain(frame.iter().copied()).collect();
        let mut bytes = vec![0; padding.len() * dtype.size()];
        copy_bytes(&padding, 0, &mut bytes);
        let frame_bytes = bytes.len();
        let padding = if repeats { Padding::Reset } else { Padding::Frame(bytes) };
        let stacks = FrameStack::new(num_envs, depth, frame_bytes, padding);
        let state = Locked::new(FrameStackState { stacks, finals: Vec::new() });
        Ok(Self { num_envs, dtype, frame, stack, state })
    }

    #[pyo3(signature = (rows, kinds, frames, ended, /))]
    fn advance<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
        kinds: &Bound<'py, PyAny>,
        frames: &Bound<'py, PyAny>,
        ended: Option<EndedArrays<'py>>,
    ) -> PyResult<WithFinals<'py>> {
        let columns = PlaceColumns::new(rows, kinds, self.num_envs)?;
        let (mut kinds, lists) = (Vec::new(), EndedLists::new(ended.as_ref())?);
        let (places, blocks) = (columns.read(&mut kinds), &mut Blocks::default());
        let ended = lists.ended(places.len())?;
        self.stacked(py, places, frames, ended, blocks)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let write = |buffer: &mut [MaybeUninit<u8>]| self.state.lock(py).stacks.write_all(buffer);
        // SAFETY: `write_all` writes every byte (invariant 1).
        unsafe { written(py, self.dtype, Some(self.num_envs), &self.stack, write) }
    }

    #[pyo3(signature = (stacks, /))]
    fn set_state(&self, stacks: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = RowValues::new("stacks", stacks, self.dtype, self.num_envs, &self.stack)?;
        let engine = &mut self.state.lock(stacks.py()).stacks;
        let mut bytes = Vec::new();
        rows.copy_bytes_to(self.num_envs * engine.stack_bytes(), &mut bytes);
        for (env, stack) in bytes.chunks_exact(engine.stack_bytes().max(1)).enumerate() {
            engine.set_stack(env, stack);
        }
        Ok(())
    }
}
