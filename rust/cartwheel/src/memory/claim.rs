//! Claims: one pool a memory, one server a worker, whoever holds clones or attachments of the memory.
//!
//! A claim is a word of the control memory, so it holds between threads, between processes, and between two
//! attachments of one memory in the same process. Who takes it writes the number of its process, by an exchange
//! that succeeds only where nobody's number stands. It is given back in one case: the process that held a
//! worker has ended, the pool has cleared what it left, and another is to follow. Whoever only returned from
//! serving keeps its claim, because its worker is closed.
//!
//! # Memory orders
//!
//! That only one of several takers succeeds needs no order: the exchanges of one word have one order by themselves.
//! `Release`, when the pool frees a worker that it cleared, pairs with the `Acquire` of the next taker, so the new
//! server finds the queue and the notes as the pool left them. The holder of a pool's claim reads nothing by it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::control::Slot;
use super::{Memory, Plan, process_id};
use crate::error::Error;

/// Nobody holds it, as in new memory.
const FREE: u32 = 0;
/// The pool is clearing what a dead holder left: nobody may take it yet. No process has this number.
const CLEARING: u32 = u32::MAX;

/// Who may do what only one may do.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct Claim(AtomicU32);

impl Claim {
    /// Takes it for this process; whether it was free.
    fn take(&self) -> bool {
        self.0.compare_exchange(FREE, process_id(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives back what was taken and not yet used.
    fn give_back(&self) {
        self.0.store(FREE, Ordering::Release);
    }

    /// Has `clear` remove what the holder left, and frees it; unless somebody holds it who has not ended.
    fn free(&self, has_ended: impl FnOnce(u32) -> bool, clear: impl FnOnce()) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        if holder == CLEARING || (holder != FREE && !has_ended(holder)) {
            return false;
        }
        // Not by a store: somebody may have taken it since.
        let (from, to) = (holder, CLEARING);
        if self.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        clear();
        self.0.store(FREE, Ordering::Release);
        true
    }
}

/// A number that tells a memory from others, by the files behind it, and its plan from other plans that need
/// as many bytes: by either, two workers could come to write the same rows.
pub(super) fn identity(plan: &Plan, files: [Option<&OwnedFd>; 4]) -> Result<u32, Error> {
    // The same in all processes that run this code, which is all that is asked of it.
    let mut hasher = DefaultHasher::new();
    plan.hash(&mut hasher);
    for file in files.into_iter().flatten() {
        let status = rustix::fs::fstat(file).map_err(Error::os("looking at a memory's file"))?;
        status.st_ino.hash(&mut hasher);
    }
    Ok(u32::try_from(hasher.finish() >> 32).expect("the upper half"))
}

impl Memory {
    /// Makes the caller the only one who serves worker `worker`.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyServed`]; then nothing was changed.
    pub(crate) fn claim_worker(&self, worker: usize) -> Result<(), Error> {
        let taken = self.control.slot(worker).server.take();
        if taken { Ok(()) } else { Err(Error::AlreadyServed { worker }) }
    }

    /// Makes the caller the only pool of this memory, and the server of the first `own` workers.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyPooled`] or [`Error::AlreadyServed`]; then nothing was changed.
    pub(crate) fn claim_pool(&self, own: usize) -> Result<(), Error> {
        let pool = &self.control.header().pool;
        if !pool.take() {
            return Err(Error::AlreadyPooled);
        }
        for worker in 0..own {
            if let Err(error) = self.claim_worker(worker) {
                (0..worker).for_each(|worker| self.control.slot(worker).server.give_back());
                pool.give_back();
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Slot {
    /// Frees a worker whose server has ended, or never began, for another one, without what the dead one
    /// left; whether it could. `has_ended` tells it of the process with a number.
    pub(crate) fn clear(&self, has_ended: impl FnOnce(u32) -> bool) -> bool {
        self.server.free(has_ended, || self.forget())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_freed_only_of_a_holder_that_has_ended() {
        let claim = Claim::default();
        assert!(claim.take());
        assert!(!claim.take(), "not even by the same process");
        assert!(!claim.free(|_| false, || panic!("somebody is at it")));
        assert!(!claim.take());
        let freed = claim.free(
            |holder| holder == process_id(),
            || assert!(!claim.take(), "what is there is not cleared yet"),
        );
        assert!(freed);
        assert!(claim.take());
    }

    #[test]
    fn a_claim_that_nobody_holds_is_cleared_all_the_same() {
        let (claim, mut cleared) = (Claim::default(), false);
        assert!(claim.free(|_| panic!("there is nobody to ask for"), || cleared = true));
        assert!(cleared);
    }
}
