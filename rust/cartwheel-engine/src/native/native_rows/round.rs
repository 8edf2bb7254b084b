//! One round: the calls of the plugin that carry out the commands of rows, and what becomes of rows
//! that fail.

use std::ops::Range;

use cartwheel_abi::{RESET, SHOW, STEP};
use cartwheel_core::Transition;

use super::{NativeRows, Place};
use crate::autoreset::restarted;
use crate::error::Error;
use crate::memory::ActionColumns;
use crate::native::mailbox::Fault;
use crate::plugin::{BatchCall, Ended, ResetOptions};
use crate::transition::PhaseTag;

impl NativeRows {
    /// Carries out the commands of rows `span` of the task, in one call unless a row fails.
    ///
    /// `options` returns the options of the reset of a row; neighbors with the same ones share a
    /// call.
    pub(super) fn round<'o>(
        &mut self,
        place: &mut Place<'_>,
        span: Range<usize>,
        actions: &ActionColumns<'_>,
        options: Option<&dyn Fn(usize) -> Option<&'o ResetOptions>>,
    ) -> Result<(), Error> {
        self.calls(place, span.clone(), actions, options)?;
        self.end_round(place, span);
        Ok(())
    }

    /// The calls of a round.
    pub(super) fn calls<'o>(
        &mut self,
        place: &mut Place<'_>,
        span: Range<usize>,
        actions: &ActionColumns<'_>,
        options: Option<&dyn Fn(usize) -> Option<&'o ResetOptions>>,
    ) -> Result<(), Error> {
        let (count, first) = (span.end, place.rows.start);
        let mut next = span.start;
        while next < count {
            let own = options.and_then(|options| options(first + next));
            let end = options.map_or(count, |options| {
                let differs = |at: &usize| !same(own, options(first + at));
                (next + 1..count).find(differs).unwrap_or(count)
            });
            self.carry_out(place, actions, next..end, own)?;
            next = end;
        }
        Ok(())
    }

    /// Tells why environments were replaced, and counts the resets.
    pub(super) fn end_round(&mut self, place: &Place<'_>, span: Range<usize>) {
        if !self.replaced.is_empty() {
            self.infos.add_errors(&self.replaced);
        }
        let commands = &self.commands[span.clone()];
        // Not a loop, which would keep the whole state of the iterator from row to row.
        restarted(commands).filter(|&at| commands[at] == RESET).for_each(|at| {
            place.counters.count_resets(place.rows.start + span.start + at, 1);
        });
        if self.external_resets.is_some() {
            self.note_begun(place, span);
        }
    }

    fn carry_out(
        &mut self,
        place: &mut Place<'_>,
        actions: &ActionColumns<'_>,
        rows: Range<usize>,
        options: Option<&ResetOptions>,
    ) -> Result<(), Error> {
        let mut next = rows.start;
        while next < rows.end {
            // Without `?`, which moves all of a result before it is looked at.
            match self.call(place, actions, next..rows.end, options) {
                Ok(Ended::Done) => break,
                Err(error) => return Err(error),
                Ok(Ended::Failed { row: at, panicked, message }) => {
                    if !self.replace(place, actions, at, &message, options)? {
                        self.fail(place, actions, at, panicked, message)?;
                    }
                    next = at + 1;
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        place: &mut Place<'_>,
        actions: &ActionColumns<'_>,
        rows: Range<usize>,
        options: Option<&ResetOptions>,
    ) -> Result<Ended, Error> {
        let (info_row, count) = (place.number(), place.rows.len());
        let mut outcomes = match &mut self.unused {
            Some(unused) => unused.outcomes(count),
            None => place.outcomes.reborrow(),
        };
        let mut call = BatchCall {
            first: place.rows.start,
            info_row,
            commands: &self.commands[..count],
            actions,
            observations: &mut place.leaves,
            outcomes: &mut outcomes,
            streams: &mut self.streams[place.rows.clone()],
            options,
        };
        self.envs.run(&mut call, rows, self.infos.plugin())
    }

    /// Replaces an environment that failed, if that is allowed, and resets the new one. A step counts
    /// as truncated. Returns whether all that succeeded.
    fn replace(
        &mut self,
        place: &mut Place<'_>,
        actions: &ActionColumns<'_>,
        at: usize,
        message: &str,
        options: Option<&ResetOptions>,
    ) -> Result<bool, Error> {
        let (row, command) = (place.rows.start + at, self.commands[at]);
        self.replacements.resize(self.autoreset.len(), 0);
        if command > RESET || self.replacements[row] >= self.max_replacements {
            return Ok(false);
        }
        self.replacements[row] += 1;
        if !self.envs.replace(row) {
            return Ok(false);
        }
        place.counters.count_replacements(row, 1);
        self.commands[at] = RESET;
        let options = options.filter(|_| command == RESET);
        let reset = self.call(place, actions, at..at + 1, options)?;
        self.commands[at] = command;
        if !matches!(reset, Ended::Done) {
            return Ok(false);
        }
        if command == STEP {
            place.counters.count_resets(row, 1);
            place.outcomes.write(at, &Transition::CUT, PhaseTag::Running);
        }
        self.replaced.push((place.first + row, message.to_owned()));
        Ok(true)
    }

    /// Fails a row. It shows its state if it still can, otherwise zeros: its place would keep a row
    /// of another batch.
    pub(super) fn fail(
        &mut self,
        place: &mut Place<'_>,
        actions: &ActionColumns<'_>,
        at: usize,
        panicked: bool,
        message: String,
    ) -> Result<(), Error> {
        let (own, row) = (place.rows.start + at, place.number() + at);
        if self.autoreset.phase(own) != PhaseTag::Failed || self.commands[at] != SHOW {
            let error = if panicked {
                Error::Panicked { row, message }
            } else {
                Error::Failed { row, message }
            };
            self.faults.push(Fault { row, error });
        }
        self.autoreset.fail(own);
        let can_show = self.commands[at] != SHOW;
        self.commands[at] = SHOW;
        let shown = can_show && matches!(self.call(place, actions, at..at + 1, None)?, Ended::Done);
        if !shown {
            place.leaves.zero(at);
        }
        Ok(())
    }
}

/// Whether two rows have the same options of their resets.
fn same(options: Option<&ResetOptions>, others: Option<&ResetOptions>) -> bool {
    match (options, others) {
        (Some(options), Some(others)) => options.is_same(others),
        (options, others) => options.is_none() && others.is_none(),
    }
}
