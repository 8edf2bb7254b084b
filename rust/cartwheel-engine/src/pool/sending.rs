//! Rows that are about to be sent, between their check and their send.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants of the module")]

use std::borrow::Cow;
use std::ops::Range;

use cartwheel_core::Error as EnvError;
use cartwheel_core::schedule::runs;

use super::Pool;
use crate::call::Call;
use crate::error::Error;
use crate::space::ActionTag;

/// Rows that can be sent and are about to be. Dropping this value has no effect.
#[derive(Debug)]
pub struct Sending<'a> {
    pub(super) pool: &'a mut Pool,
    pub(super) call: Call,
    /// `None`: all rows, as a task.
    pub(super) rows: Option<Cow<'a, [usize]>>,
    /// Leaves of which the actions of rows were stored: the first so many.
    pub(super) stored: usize,
    pub(super) in_order: bool,
}

impl Sending<'_> {
    /// Whether all rows are sent, as a task.
    pub fn is_task(&self) -> bool {
        self.rows.is_none()
    }

    /// Whether actions with this tag fit those of the steps in flight: the tag determines the
    /// offset of a row's elements, so all rows in flight share one tag. Floats of every dtype fit
    /// each other.
    pub fn fits(&self, leaf: usize, tag: ActionTag) -> bool {
        // SAFETY: tags are written through `&mut Pool` only (invariant 2).
        self.pool.sent.steps == 0 || unsafe { self.pool.memory.actions.fits(leaf, tag) }
    }

    /// Stores the rows' actions, one leaf after the other. `fill` is called for the rows in order,
    /// once for each run of neighbors: with their positions among the rows that are sent, and the
    /// memory for their elements, where the workers will read them. It can check them before any
    /// worker reads them: they take effect only at [`Sending::send`].
    ///
    /// The tag is not checked against the plan: a worker may read actions of several dtypes. Each of
    /// the rows fails where the worker asks for another one, with [`Error::WrongActionDType`].
    ///
    /// # Errors
    ///
    /// The first error of `fill`, which is not called again. A row in it counts from the first of the
    /// run, and is replaced by its number.
    ///
    /// # Panics
    ///
    /// When the tag does not [fit](Self::fits), or the leaf of rows is not the one after those that
    /// were stored.
    pub fn fill_actions(
        &mut self,
        leaf: usize,
        tag: ActionTag,
        mut fill: impl FnMut(Range<usize>, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        assert!(self.fits(leaf, tag), "the dtype of the actions in flight");
        let actions = &self.pool.memory.actions;
        let Some(rows) = &self.rows else {
            let all = actions.all_rows();
            // SAFETY: nothing is pending or in flight, as was checked (invariant 2).
            return unsafe { actions.store(leaf, tag, all.clone(), |room| fill(all, room)) };
        };
        assert_eq!(leaf, self.stored, "leaves are stored one after the other");
        let mut at = 0;
        for run in runs(rows) {
            let (first, end) = (run.start, at + run.len());
            // SAFETY: none of these rows is in flight, and the tag fits those of the rows that are,
            // as was just checked (invariant 2).
            let stored = unsafe { actions.store(leaf, tag, run, |room| fill(at..end, room)) };
            stored.map_err(|error| of_run(error, first))?;
            at = end;
        }
        self.stored += 1;
        Ok(())
    }

    /// For a caller that waits for exactly these rows: they are received in this order, whatever
    /// [the pool's](Pool::recv_order), if no other row is in flight and a batch has room for all.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { in_order: true, ..self }
    }

    /// Gives the rows to their workers. The shards get `flags`, which must be below 2^31,
    /// unchanged. Rows of a step have no actions of the leaves that were not stored.
    ///
    /// # Errors
    ///
    /// [`Error::SlabsHeld`] while batches are held that must be copied; then nothing was sent.
    pub fn send(self, flags: u32) -> Result<(), Error> {
        match &self.rows {
            None => self.pool.begin_checked(self.call, flags),
            Some(rows) => {
                let actions = &self.pool.memory.actions;
                if self.call == Call::Step && self.stored < actions.leaves() {
                    for run in runs(rows) {
                        // SAFETY: none of these rows is in flight, as was checked (invariant 2).
                        unsafe { actions.erase(self.stored, run) }
                    }
                }
                self.pool.send(self.call, rows, flags, self.in_order)
            }
        }
    }
}

/// The error of an action in a run of rows, with the number of its row.
fn of_run(error: Error, first: usize) -> Error {
    match error {
        Error::Env(EnvError::ActionOutOfRange { row, value, space }) => {
            EnvError::ActionOutOfRange { row: first + row, value, space }.into()
        }
        other => other,
    }
}
