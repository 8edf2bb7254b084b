//! Resets that the owner of the pool completes: it writes the first state of an episode.
//!
//! A reset takes place as usual, in any mode. The shard tells its owner which rows began an episode,
//! after the task in which they did, with their random streams. The owner answers with one request for
//! all of them, before it shows the batch to its caller.

use std::ops::Range;

use cartwheel_abi::{LEAVE, RESET, SHOW};

use super::{NativeRows, Place};
use crate::autoreset::restarted;
use crate::error::Error;
use crate::info::{InfoReader, Value};
use crate::memory::Scratch;
use crate::native::mailbox::{Answer, Beginning, BegunRow};
use crate::plugin::{BatchCall, Ended};

impl NativeRows {
    /// Notes the rows of a round that began an episode: those that were reset, and those whose
    /// environments were replaced.
    pub(super) fn note_begun(&mut self, place: &Place<'_>, span: Range<usize>) {
        let first = place.rows.start + span.start;
        let resets = restarted(&self.commands[span.clone()])
            .filter(|at| self.commands[span.start + at] == RESET)
            .map(|at| first + at);
        self.begun.extend(resets);
        self.begun.extend(self.replaced.iter().map(|(row, _)| row - place.first));
    }

    /// Leaves those of `rows`, counted from the first row of the pool, that began an episode for the
    /// owner; the shard begins with row `first`. A row whose environment cannot tell its parameter has
    /// failed, and is left out.
    pub(in crate::native) fn report_begun(&mut self, rows: &Range<usize>, first: usize) {
        let Some(parameter) = self.external_resets.filter(|_| !self.begun.is_empty()) else {
            return;
        };
        let mut begun: Vec<_> =
            self.begun.extract_if(.., |row| rows.contains(&(first + *row))).collect();
        begun.sort_unstable();
        begun.dedup();
        for row in begun {
            if let Ok(known_as) = self.envs.parameter(row, parameter) {
                let stream = self.streams[row].clone();
                self.mailbox.post_begun(BegunRow { row: first + row, known_as, stream });
            }
        }
    }

    /// Rows continue from the states that their owner has written; returns what they show.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] for a row that does not take its state.
    pub(in crate::native) fn begin_written(&mut self, begun: Beginning) -> Result<Answer, Error> {
        let Beginning { rows, streams, parameter: (name, value) } = begun;
        let number = self.parameter(&name)?;
        let count = self.envs.len();
        let mut commands = vec![LEAVE; count];
        for (&row, stream) in rows.iter().zip(streams) {
            self.envs
                .set_parameter(row, number, &value)
                .map_err(|message| Error::Failed { row, message })?;
            let answer = self.envs.parameter(row, number);
            let answer = answer.map_err(|message| Error::Failed { row, message })?;
            if let Ok(Value::Text(message)) = InfoReader::new(&answer, 0).value() {
                return Err(Error::Failed { row, message: message.to_owned() });
            }
            self.streams[row] = stream;
            self.shown.forget(row);
            commands[row] = SHOW;
        }
        let mut memory = Scratch::new(&self.observations, count)?;
        let (mut leaves, mut outcomes) = memory.columns(0..count);
        let mut call =
            BatchCall::without_actions(&commands, &mut leaves, &mut outcomes, &mut self.streams);
        let shown = self.envs.run(&mut call, 0..count, self.infos.plugin());
        self.infos.clear();
        if let Ended::Failed { row, message, .. } = shown? {
            return Err(Error::Failed { row, message });
        }
        let of =
            |leaf| rows.iter().flat_map(|&row| leaves.bytes(leaf, row..row + 1)).copied().collect();
        Ok(Answer::Begun((0..self.observations.len()).map(of).collect()))
    }
}
