//! Messages between the owner of a pool and its native shards, besides the batch.
//!
//! Steps do not use it, except those with automatic resets for which the owner left seeds or options.
//! It holds the details of resets and control calls before they begin, and
//! answers, faults and infos that did not fit after the task is finished. Both sides are in one
//! process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cartwheel_core::rng::Rng;

use super::cache::{Draw, ResetCache};
use super::state::RowState;
use super::stream::{Seed, Stream};
use crate::error::Error;
use crate::info::InfoWriter;
use crate::plugin::{RenderFrame, ResetOptions};
use crate::space::DType;

/// The reset of one row.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RowReset {
    /// Nothing: its observation is shown again.
    Leave,
    /// It begins an episode with its present stream.
    Continue,
    /// It begins an episode with the stream of this seed.
    Seed(u128),
    /// It begins an episode with the stream of a longer seed: little-endian 32-bit words.
    WideSeed(Vec<u32>),
    /// It continues from a saved state. Boxed: a reset has one of these values for each row.
    Restore(Box<RowState>),
}

/// The options of a reset, of the rows that begin an episode.
#[derive(Debug, Default)]
pub enum RowOptions {
    /// None of them has options.
    #[default]
    None,
    /// All of them share options.
    OfAll(ResetOptions),
    /// Options of their own, or none, for each row of the shard.
    OfEach(Vec<Option<ResetOptions>>),
}

impl RowOptions {
    /// The options of a row, counted from the first row of the shard.
    pub(super) fn of(&self, row: usize) -> Option<&ResetOptions> {
        match self {
            Self::None => None,
            Self::OfAll(options) => Some(options),
            Self::OfEach(options) => options.get(row)?.as_ref(),
        }
    }
}

impl From<Option<ResetOptions>> for RowOptions {
    fn from(options: Option<ResetOptions>) -> Self {
        options.map_or(Self::None, Self::OfAll)
    }
}

/// A control call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Reads the parameter of this name in these rows, counted from the first row of the shard.
    Get(String, Vec<usize>),
    /// Sets the parameter of this name in rows, counted from the first row of the shard, each to a
    /// value of the info format. When a value is refused, the other rows keep their new values.
    Set(String, Vec<(usize, Vec<u8>)>),
    /// The states of these rows, counted from the first row of the shard.
    Save(Vec<usize>),
    /// The random stream of every row.
    Streams,
    /// Gives every row another random stream, one for each row of the shard.
    SetStreams(Vec<Stream>),
    /// Drawings of these rows, counted from the first row of the shard.
    Render {
        /// The rows.
        rows: Vec<usize>,
        /// The number of the render mode.
        mode: usize,
    },
    /// From now on, terminal states of these rows, counted from the first row of the shard, are kept
    /// in `SAME_STEP`, and those of all others are not.
    Keep(Vec<usize>, TerminalState),
    /// Resets of these rows, counted from the first row of the shard, with seeds; the rows have to be
    /// reset afterwards. The answer has bytes for a [`ResetCache`].
    Sample(Vec<(usize, Seed)>),
    /// From now on, every reset loads a state; with one draw for each row of the shard.
    Cache(Arc<ResetCache>, Vec<Draw>),
    /// The present draw of every row.
    Draws,
    /// These rows, counted from the first row of the shard, need a reset: their owner could not use
    /// their last results.
    Fail(Vec<usize>),
    /// Rows that began an episode continue from a first state that their owner has written.
    Begin(Beginning),
    /// Nothing.
    Nothing,
}

/// Rows, counted from the first row of the shard, whose owner has completed their resets.
#[derive(Debug)]
pub struct Beginning {
    /// The rows.
    pub rows: Vec<usize>,
    /// Their random streams from now on.
    pub streams: Vec<Rng>,
    /// The name of a parameter, and the value of the info format to which it is set in each of them: it
    /// tells the environments that their states were written. Afterwards it reads as text in one that
    /// refuses its state: the reason.
    pub parameter: (String, Vec<u8>),
}

/// A row that began an episode, whose reset the owner completes.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunRow {
    /// The row, counted from the first row of the pool.
    pub row: usize,
    /// The parameter by which the owner knows it, as a value of the info format.
    pub known_as: Vec<u8>,
    /// Its random stream after the reset.
    pub stream: Rng,
}

/// The form of the terminal state of a row, which is kept before its reset in the same step: in a
/// record of the kind [`Opaque`](crate::info::RecordKind::Opaque) with the leaf
/// [`TERMINAL`](crate::info::TERMINAL).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminalState {
    /// A drawing, in the render mode of this number.
    Drawing(usize),
    /// The parameters: a dictionary.
    Parameters,
}

/// The result of a control call.
#[derive(Debug)]
pub enum Answer {
    /// The parameters, one value of the info format for each row that was asked for.
    Values(Vec<Vec<u8>>),
    /// All values or streams were set.
    Done,
    /// The states of the rows that were asked for, see [`RowState::read`].
    States(Vec<Vec<u8>>),
    /// The drawings, one for each row that was asked for.
    Frames(Vec<RenderFrame>),
    /// The draws, one for each row of the shard; none without a cache.
    Draws(Vec<Draw>),
    /// The random streams, one for each row of the shard.
    Streams(Vec<Stream>),
    /// The observations of rows that began: for each leaf, the elements of these rows.
    Begun(Vec<Vec<u8>>),
}

/// Rewards and flags that the owner of a pool computes for a shard's rows after the first half of a step:
/// one entry for each of them. Entries of rows that were not stepped count for nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalRewards {
    /// Rewards.
    pub rewards: Vec<f64>,
    /// Rows that ended their episode, 0 or 1.
    pub terminations: Vec<u8>,
    /// Episodes that were cut short, 0 or 1.
    pub truncations: Vec<u8>,
    /// Infos of the rows that were stepped.
    pub infos: Vec<ExternalInfo>,
}

/// An info that the owner of a pool computes for rows: one entry for each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalInfo {
    /// Its key.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// The shape of an entry; a number where it is empty.
    pub shape: Vec<usize>,
    /// The elements of all rows; truth values are 0 or 1.
    pub elements: Vec<u8>,
}

impl ExternalInfo {
    /// Number of bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.dtype.size() * self.shape.iter().product::<usize>()
    }

    /// Writes the entry of the row in this place.
    pub(super) fn write(&self, place: usize, into: &mut InfoWriter) {
        let bytes = self.entry_bytes();
        let entry = &self.elements[place * bytes..(place + 1) * bytes];
        match (self.dtype, self.shape.is_empty()) {
            (DType::Bool, true) => into.bool(entry != [0]),
            (dtype, true) => into.scalar(dtype, entry),
            (dtype, false) => into.array(dtype, &self.shape, entry),
        }
    }
}

/// A row that failed in the task that finished last.
#[derive(Debug)]
pub struct Fault {
    /// The row, counted from the start of the batch.
    pub row: usize,
    /// The reason.
    pub error: Error,
}

#[derive(Debug, Default)]
struct Contents {
    reset: Option<(Vec<RowReset>, RowOptions)>,
    request: Option<Request>,
    answer: Option<Result<Answer, Error>>,
    /// Resets of rows that were sent and have not begun.
    resets: BTreeMap<usize, (RowReset, Option<ResetOptions>)>,
    /// Seeds and options of the next automatic resets of rows.
    next_resets: BTreeMap<usize, (RowReset, Option<ResetOptions>)>,
    rewards: Option<ExternalRewards>,
    begun: Vec<BegunRow>,
    faults: Vec<Fault>,
    /// Info streams that did not fit, by their first row.
    spilled: BTreeMap<usize, Vec<u8>>,
}

/// One shard's mailbox.
#[derive(Debug, Default)]
pub struct Mailbox {
    contents: Mutex<Contents>,
    /// Whether there are `next_resets`, so that steps need not lock. A row is not in flight when
    /// something is left for it: sending it makes this visible to its shard.
    has_next_resets: AtomicBool,
}

impl Mailbox {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner) // consistent between any two calls
    }

    /// Leaves the details of the next reset: one [`RowReset`] for each row of the shard, and
    /// options for the rows that begin an episode. Without details every row continues.
    pub fn post_reset(&self, rows: Vec<RowReset>, options: RowOptions) {
        self.contents().reset = Some((rows, options));
    }

    /// Leaves the details of the reset of one row, counted from the first row of the pool, that is
    /// going to be sent.
    pub fn post_row_reset(&self, row: usize, how: RowReset, options: Option<ResetOptions>) {
        self.contents().resets.insert(row, (how, options));
    }

    /// Leaves stream and options for the next reset that the autoreset mode makes of this row, counted
    /// from the first row of the pool. It replaces what was left before. An explicit reset of the row
    /// discards it. The row must not be in flight.
    pub fn post_next_reset(&self, row: usize, how: RowReset, options: Option<ResetOptions>) {
        let mut contents = self.contents();
        contents.next_resets.insert(row, (how, options));
        self.has_next_resets.store(true, Ordering::Relaxed); // published with the row's next step
    }

    /// The rows, counted from the first row of the pool, for whose next automatic reset something was
    /// left and not used.
    pub fn next_reset_rows(&self) -> Vec<usize> {
        self.contents().next_resets.keys().copied().collect()
    }

    /// Leaves a control call, for the next [`crate::wake::Op::Call`].
    pub fn post_request(&self, request: Request) {
        self.contents().request = Some(request);
    }

    /// Leaves the rewards for the second half of a step. Without them, the rows that were stepped fail,
    /// without a fault: their owner knows why.
    ///
    /// # Panics
    ///
    /// When its columns differ in length.
    pub fn post_rewards(&self, columns: ExternalRewards) {
        let ExternalRewards { rewards, terminations, truncations, .. } = &columns;
        assert!(rewards.len() == terminations.len() && rewards.len() == truncations.len());
        self.contents().rewards = Some(columns);
    }

    /// Takes the answer to the control call that has finished.
    pub fn take_answer(&self) -> Option<Result<Answer, Error>> {
        self.contents().answer.take()
    }

    /// Takes the faults of the tasks that have finished, if [`crate::worker::Report::failed`].
    pub fn take_faults(&self) -> Vec<Fault> {
        std::mem::take(&mut self.contents().faults)
    }

    /// Takes the fault of one row that was sent and received, if it failed.
    pub fn take_fault(&self, row: usize) -> Option<Fault> {
        let mut contents = self.contents();
        let at = contents.faults.iter().position(|fault| fault.row == row)?;
        Some(contents.faults.remove(at))
    }

    /// Takes the rows that began an episode in the tasks that have finished, if the owner
    /// [completes their resets](super::ShardSettings::external_resets).
    pub fn take_begun(&self) -> Vec<BegunRow> {
        std::mem::take(&mut self.contents().begun)
    }

    /// Takes the info stream that begins with row `row`, if [`crate::worker::Report::spilled`] or
    /// [`crate::memory::InfosAt::Channel`].
    pub fn take_spilled(&self, row: usize) -> Option<Vec<u8>> {
        self.contents().spilled.remove(&row)
    }

    pub(super) fn take_reset(&self) -> (Vec<RowReset>, RowOptions) {
        self.contents().reset.take().unwrap_or_default()
    }

    pub(super) fn take_row_reset(&self, row: usize) -> Option<(RowReset, Option<ResetOptions>)> {
        self.contents().resets.remove(&row)
    }

    /// Whether anything was left for automatic resets.
    pub(super) fn has_next_resets(&self) -> bool {
        self.has_next_resets.load(Ordering::Relaxed) // acquired with the row's step
    }

    pub(super) fn take_next_reset(&self, row: usize) -> Option<(RowReset, Option<ResetOptions>)> {
        let mut contents = self.contents();
        let taken = contents.next_resets.remove(&row);
        if contents.next_resets.is_empty() {
            self.has_next_resets.store(false, Ordering::Relaxed); // under the lock, by the shard itself
        }
        taken
    }

    pub(super) fn take_rewards(&self) -> Option<ExternalRewards> {
        self.contents().rewards.take()
    }

    pub(super) fn take_request(&self) -> Option<Request> {
        self.contents().request.take()
    }

    pub(super) fn post_answer(&self, answer: Result<Answer, Error>) {
        self.contents().answer = Some(answer);
    }

    pub(super) fn post_begun(&self, row: BegunRow) {
        self.contents().begun.push(row);
    }

    pub(super) fn post_faults(&self, faults: Vec<Fault>) {
        self.contents().faults.extend(faults);
    }

    pub(super) fn post_spilled(&self, row: usize, stream: &[u8]) {
        self.contents().spilled.insert(row, stream.to_vec());
    }
}
