//! Tasks: a batch of the host, with Rust's types.
//!
//! # Invariants
//!
//! 1. **The host's promises.** A batch is as `cartwheel_abi::Batch` describes it: arrays of `rows`
//!    entries, initialized, aligned, disjoint, and used by no other code during the call; leaves as
//!    the kind describes them; reset options made by the same table.
//! 2. **None.** Where no row steps, pointers to actions point nowhere, and there are no slices of
//!    them. A null pointer is an empty array.
#![expect(unsafe_code, reason = "sees the host's arrays as slices, see the invariants")]

use std::mem::MaybeUninit;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use cartwheel_abi::{Batch, STEP};
use cartwheel_core::info::InfoWriter;
use cartwheel_core::rng::Rng;

use super::sink::SinkBuffer;
use super::typed_kind::TypedKind;
use crate::env::{Env, Leaves, LeavesMut, View};

/// One call of the host for consecutive rows.
pub(super) struct BatchCall<'a, E: Env> {
    pub(super) first: usize,
    pub(super) commands: &'a [u8],
    /// Whether a row steps, from the row on with which the call begins.
    pub(super) steps: bool,
    pub(super) actions: <E::Action as View>::Rows<'a>,
    pub(super) observations: <E::Observation as View>::RowsMut<'a>,
    pub(super) rewards: &'a mut [f64],
    pub(super) terminations: &'a mut [u8],
    pub(super) truncations: &'a mut [u8],
    pub(super) rngs: &'a mut [Rng],
    pub(super) reset_options: Option<&'a E::ResetOptions>,
    /// The number of the first row in the records of infos.
    pub(super) info_row: usize,
    pub(super) infos: InfoWriter<SinkBuffer<'a>>,
}

impl<'a, E: Env> BatchCall<'a, E> {
    /// The call of a batch.
    ///
    /// # Safety
    ///
    /// Invariant 1, for `'a`.
    pub(super) unsafe fn new(batch: &Batch, kind: &'a TypedKind<E>) -> Self {
        let rows = batch.rows;
        let (actions, observations) = (&kind.action_leaves, &kind.observation_leaves);
        // SAFETY: an array of this batch (invariant 1).
        let commands = unsafe { slice(batch.commands, rows) };
        let steps = commands[batch.next..].contains(&STEP);
        // SAFETY: a pointer for each leaf of the actions where rows step (invariant 1).
        let action_pointers =
            unsafe { slice(batch.actions, if steps { actions.len() } else { 0 }) };
        // SAFETY: a pointer for each leaf of the observations (invariant 1).
        let observation_pointers = unsafe { slice(batch.observations, observations.len()) };
        // SAFETY: the arrays are those of the action space (invariant 1).
        let action_leaves = unsafe { Leaves::new(action_pointers, actions, rows) };
        // SAFETY: one dtype for each leaf (invariant 1), or null.
        let dtypes = unsafe { slice(batch.action_dtypes, if steps { actions.len() } else { 0 }) };
        // SAFETY: they are those of the arrays (invariant 1).
        let mut action_leaves = unsafe { action_leaves.with_dtypes(dtypes) };
        // SAFETY: the arrays are those of the observation space (invariant 1).
        let mut observation_leaves =
            unsafe { LeavesMut::new(observation_pointers, observations, rows) };
        Self {
            first: batch.first,
            commands,
            steps,
            actions: E::Action::rows(&mut action_leaves),
            observations: E::Observation::rows_mut(&mut observation_leaves),
            // SAFETY: an array of this batch (invariant 1).
            rewards: unsafe { slice_mut(batch.rewards, rows) },
            // SAFETY: an array of this batch (invariant 1).
            terminations: unsafe { slice_mut(batch.terminations, rows) },
            // SAFETY: an array of this batch (invariant 1).
            truncations: unsafe { slice_mut(batch.truncations, rows) },
            // SAFETY: an array of this batch (invariant 1); a random number generator has the layout of a stream.
            rngs: unsafe { slice_mut(batch.streams.cast(), rows) },
            // SAFETY: made by `reset_options_new` of the same table (invariant 1), or null.
            reset_options: unsafe { batch.reset_options.cast::<E::ResetOptions>().as_ref() },
            info_row: batch.info_row as usize,
            // SAFETY: a sink of the host (invariant 1).
            infos: InfoWriter::over(unsafe { SinkBuffer::new(batch.infos) }),
        }
    }
}

/// A batch of the host, with null for fields that the host's version does not have. A reference to
/// the batch would promise that they are there.
///
/// # Safety
///
/// Invariant 1.
#[inline]
pub(super) unsafe fn copied(batch: *const Batch) -> Batch {
    // SAFETY: every table begins with its size.
    let size = unsafe { (*batch).struct_size };
    if size >= size_of::<Batch>() {
        // SAFETY: all fields are there.
        return unsafe { batch.read() };
    }
    let mut copy = MaybeUninit::<Batch>::zeroed();
    // SAFETY: as many bytes are there, and the copy is longer.
    unsafe { batch.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size) };
    // SAFETY: numbers and pointers, which may be zero.
    unsafe { copy.assume_init() }
}

/// The `len` elements at `first`; none if it is null.
///
/// # Safety
///
/// Invariants 1 and 2.
pub(super) unsafe fn slice<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { from_raw_parts(first, len) }
}

/// The `len` elements at `first`, for writing; none if it is null.
///
/// # Safety
///
/// Invariants 1 and 2.
unsafe fn slice_mut<'a, T>(first: *mut T, len: usize) -> &'a mut [T] {
    if first.is_null() {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { from_raw_parts_mut(first, len) }
}
