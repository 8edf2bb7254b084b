//! The control words: one line per worker, and one for the pool.
//!
//! Each lies on 128 bytes of its own, two cache lines, because processors prefetch lines in pairs.
#![expect(unsafe_code, reason = "views mapped bytes as atomics, see the invariants")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Mapping;
use crate::error::Error;

/// "cwhl" and the version of everything that lies in shared memory.
const MAGIC: u32 = u32::from_le_bytes(*b"cwhl");
const VERSION: u32 = 1;

/// The pool's own line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Header {
    magic: AtomicU32,
    version: AtomicU32,
    workers: AtomicU32,
    /// The doorbell: what the pool waits on and the last worker to finish rings.
    pub doorbell: AtomicU32,
    /// Workers that have not acknowledged the pending task; the one that takes it to zero rings.
    pub remaining: AtomicU32,
}

/// One worker's line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    /// Commands to the worker, see [`crate::wake`].
    pub word: AtomicU32,
    /// Number of the last task that the worker acknowledged.
    pub done: AtomicU32,
    /// The slab to fill; written before the command that needs it.
    pub slab: AtomicU32,
    /// What the worker is told beside the operation; written before the command.
    pub flags: AtomicU32,
    /// What the worker says of the task it acknowledged, a [`crate::worker::Report`].
    pub status: AtomicU32,
    /// Bytes of info that it wrote to its region.
    pub info_bytes: AtomicU32,
}

/// All control words of a pool; cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    mapping: Arc<Mapping>,
    workers: usize,
}

impl Control {
    pub(super) fn bytes(workers: usize) -> usize {
        size_of::<Header>() + workers * size_of::<Slot>()
    }

    pub(super) fn new(mapping: Arc<Mapping>, workers: usize) -> Self {
        assert!(mapping.len() >= Self::bytes(workers), "control words fit their mapping");
        Self { mapping, workers }
    }

    /// Signs new memory, before any worker sees it.
    pub(super) fn initialise(&self) {
        let header = self.header();
        header.magic.store(MAGIC, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.workers.store(self.workers_u32(), Ordering::Relaxed);
    }

    /// Checks, in a worker, who made the memory: an upgraded package next to an old worker must
    /// fail here.
    pub(super) fn verify(&self) -> Result<(), Error> {
        let header = self.header();
        for (what, word, expected) in [
            ("magic number", &header.magic, MAGIC),
            ("version", &header.version, VERSION),
            ("number of workers", &header.workers, self.workers_u32()),
        ] {
            let got = word.load(Ordering::Relaxed);
            if got != expected {
                let (expected, got) = (expected as usize, got as usize);
                return Err(Error::Mismatch { what, expected, got });
            }
        }
        Ok(())
    }

    fn workers_u32(&self) -> u32 {
        u32::try_from(self.workers).expect("a pool has fewer than 2^32 workers")
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The pool's line.
    pub fn header(&self) -> &Header {
        let place = self.mapping.at(0..size_of::<Header>()).cast::<Header>();
        debug_assert!(place.is_aligned(), "a mapping starts on a page");
        // SAFETY: inside the mapping and aligned; the mapping outlives `self` (invariant 1), and a
        // `Header` consists of atomics, which zeros are valid for (invariant 2).
        unsafe { place.as_ref() }
    }

    /// The line of worker `worker`.
    ///
    /// # Panics
    ///
    /// When there is no such worker.
    pub fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.workers, "there is no worker {worker}");
        let start = size_of::<Header>() + worker * size_of::<Slot>();
        let place = self.mapping.at(start..start + size_of::<Slot>()).cast::<Slot>();
        debug_assert!(place.is_aligned(), "slots lie on multiples of their alignment");
        // SAFETY: as in `header`, for a `Slot`.
        unsafe { place.as_ref() }
    }
}
