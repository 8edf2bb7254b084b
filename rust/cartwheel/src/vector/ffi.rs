//! Conversion of Rust's types for the engine: kinds from typed options, and batches as slices.
//!
//! # Invariants
//!
//! 1. **Tables.** `EnvTable::new::<E>` has every function, made by this crate for `E`, and they keep
//!    the contract of `cartwheel_abi`.
//! 2. **Kinds and options** that this file gives to the engine were made for the same `E`, by
//!    functions that its table's functions know, and are given once.
//! 3. **Batches.** A [`BatchMemory`] has a lease on a batch that a pool of this process handed out, or a
//!    copy of one, or all of a rollout whose recording has ended. Every byte is initialized and at
//!    rest as long as the lease lives, and arrays are where the layout says, aligned to their
//!    elements. No code writes there: this crate only reads.
//! 4. **Flags** are 0 or 1: a table of this crate writes `u8::from(bool)`, and the engine combines
//!    them.
#![expect(
    unsafe_code,
    reason = "gives typed memory to the engine and takes it, see the invariants"
)]

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::null;
use std::slice::from_raw_parts;
use std::sync::Arc;

use cartwheel_core::Leaf;
use cartwheel_engine::memory::{Lease, RolloutLease};
use cartwheel_engine::platform::with_standard_floats;
use cartwheel_engine::plugin::{EnvKind, EnvTable as Table, ResetOptions};
use cartwheel_engine::space::{BatchLayout, Layout};

use super::error::VectorError;
use crate::env::{Env, Leaves, View};
use crate::table::{EnvTable, kind_of, reset_options_of};

/// The kind of an `E` with these options. Its name is that of the type, and its states know the
/// options by their `Debug` form.
pub(crate) fn kind<E: Env>(
    options: E::Options,
    prints_panics: bool,
) -> Result<Arc<EnvKind>, VectorError> {
    let name = std::any::type_name::<E>();
    let text = format!("{options:?}");
    let functions = EnvTable::new::<E>(c"").into_abi();
    // SAFETY: a table of this crate (invariant 1).
    let table = unsafe { Table::of_program(functions, name) };
    let made = with_standard_floats(|| kind_of::<E>(options, prints_panics))
        .map_err(|error| crate::Error::bad_options(format!("{name}: {error}")))?;
    // SAFETY: made for the same environment, a moment ago (invariant 2).
    Ok(unsafe { EnvKind::from_made(&table, text, made) }?)
}

pub(super) fn reset_options<E: Env>(kind: &Arc<EnvKind>, options: E::ResetOptions) -> ResetOptions {
    assert_eq!(kind.table().id(), std::any::type_name::<E>(), "the kind is that of the type");
    // SAFETY: the kind was made for the same environment, by `kind` (invariant 2).
    unsafe { ResetOptions::from_made(kind, reset_options_of::<E>(options)) }
}

/// Leaves up to this number need no memory for their addresses.
const INLINE_LEAVES: usize = 8;

/// The memory of a batch, or of all batches of a rollout.
pub(super) struct BatchMemory {
    backing: Backing,
    leaves: Arc<[Leaf]>,
    /// Places that are filled, in each batch.
    places: usize,
}

enum Backing {
    Lease(Lease),
    Copy(Box<[u64]>, Layout),
    Rollout(Arc<RolloutLease>),
}

impl fmt::Debug for BatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchMemory").field("places", &self.places).finish_non_exhaustive()
    }
}

impl BatchMemory {
    /// The first `places` places of a batch that was handed out.
    pub(super) fn new(lease: Lease, leaves: &Arc<[Leaf]>, places: usize) -> Self {
        let leaves = Arc::clone(leaves);
        assert!(places <= lease.layout().rows(), "a batch has a place for each row");
        if !lease.must_copy() {
            return Self { backing: Backing::Lease(lease), leaves, places };
        }
        let layout = lease.layout().to_layout();
        let mut words = vec![0_u64; layout.bytes().div_ceil(8)].into_boxed_slice();
        let first = words.as_mut_ptr().cast();
        // SAFETY: the bytes of these words; a word may have any bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, layout.bytes()) };
        lease.read(0, bytes);
        Self { backing: Backing::Copy(words, layout), leaves, places }
    }

    /// All batches of a rollout whose recording has ended.
    pub(super) fn of_rollout(rollout: Arc<RolloutLease>, leaves: &Arc<[Leaf]>) -> Self {
        let places = rollout.layout(0).rows();
        Self { backing: Backing::Rollout(rollout), leaves: Arc::clone(leaves), places }
    }

    /// Number of places.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// The layout of batch `batch`, which is 0 unless this is a rollout.
    fn layout(&self, batch: usize) -> BatchLayout<'_> {
        match &self.backing {
            Backing::Lease(lease) => lease.layout(),
            Backing::Copy(_, layout) => layout.batch(),
            Backing::Rollout(rollout) => rollout.layout(batch),
        }
    }

    /// The address of a range of bytes.
    fn at(&self, range: Range<usize>) -> *const u8 {
        match &self.backing {
            Backing::Lease(lease) => lease.at(range).as_ptr(),
            Backing::Copy(words, layout) => {
                assert!(range.start <= range.end && range.end <= layout.bytes(), "{range:?}");
                words.as_ptr().cast::<u8>().wrapping_add(range.start)
            }
            Backing::Rollout(rollout) => rollout.at(range).as_ptr(),
        }
    }

    pub(super) fn observations<V: View>(&self, batch: usize) -> V::Rows<'_> {
        let layout = self.layout(batch);
        let address = |leaf: usize| {
            let start = layout.leaf_offset(leaf);
            let bytes = self.leaves[leaf].row_bytes() * self.places;
            self.at(start..start + bytes).cast::<c_void>()
        };
        let (mut few, many);
        let addresses = if self.leaves.len() <= INLINE_LEAVES {
            few = [null(); INLINE_LEAVES];
            for (leaf, place) in few.iter_mut().enumerate().take(self.leaves.len()) {
                *place = address(leaf);
            }
            &few[..self.leaves.len()]
        } else {
            many = (0..self.leaves.len()).map(address).collect::<Vec<_>>();
            &many
        };
        // SAFETY: arrays of these leaves, at rest while this is borrowed (invariant 3).
        V::rows(&mut unsafe { Leaves::new(addresses, &self.leaves, self.places) })
    }

    /// The bytes of the observation in place `at` of the first batch, leaf after leaf.
    pub(super) fn observation_bytes(&self, at: usize) -> Vec<u8> {
        assert!(at < self.places, "place {at} of {}", self.places);
        let layout = self.layout(0);
        let mut all = Vec::new();
        for (leaf, bytes) in self.leaves.iter().map(Leaf::row_bytes).enumerate() {
            let start = layout.leaf_offset(leaf) + at * bytes;
            let first = self.at(start..start + bytes);
            // SAFETY: initialized bytes at rest (invariant 3).
            all.extend_from_slice(unsafe { from_raw_parts(first, bytes) });
        }
        all
    }

    /// The rewards of `batches`, one after the other.
    pub(super) fn rewards(&self, batches: Range<usize>) -> &[f64] {
        let start = self.layout(batches.start).rewards_offset();
        let count = batches.len() * self.places;
        let first = self.at(start..start + count * size_of::<f64>());
        // SAFETY: numbers at rest (invariant 3); any bits are a number.
        unsafe { from_raw_parts(first.cast(), count) }
    }

    /// The terminations of the first batch.
    pub(super) fn terminations(&self) -> &[bool] {
        as_bools(self.flags(0..1)[0])
    }

    /// The truncations of the first batch.
    pub(super) fn truncations(&self) -> &[bool] {
        as_bools(self.flags(0..1)[1])
    }

    /// The terminations and the truncations of `batches`, one after the other.
    pub(super) fn flags(&self, batches: Range<usize>) -> [&[u8]; 2] {
        let layout = self.layout(batches.start);
        [layout.terminations_offset(), layout.truncations_offset()].map(|start| {
            let count = batches.len() * self.places;
            let first = self.at(start..start + count);
            // SAFETY: bytes at rest (invariant 3).
            unsafe { from_raw_parts(first, count) }
        })
    }

    /// The phases of the rows, each an [`cartwheel_engine::PhaseTag`].
    pub(super) fn phases(&self) -> &[u8] {
        let start = self.layout(0).phases_offset();
        let first = self.at(start..start + self.places);
        // SAFETY: bytes at rest (invariant 3).
        unsafe { from_raw_parts(first, self.places) }
    }
}

/// Flags of a batch.
fn as_bools(flags: &[u8]) -> &[bool] {
    // SAFETY: each of them is 0 or 1 (invariant 4).
    unsafe { from_raw_parts(flags.as_ptr().cast(), flags.len()) }
}
