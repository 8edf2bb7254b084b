//! Autoreset: when a finished row restarts. One state machine, three modes, every executor.
//!
//! ```text
//!             step ends the episode                     what the next step does
//! NEXT_STEP   terminal observation, flags; → over       resets, ignores the action; → running
//! SAME_STEP   terminal one kept aside, reset at once    an ordinary step
//! DISABLED    terminal observation, flags; → over       an error, or the same frame again
//! ```
//!
//! After an explicit reset a row is always running. A row whose environment failed stays `failed`
//! until an explicit reset succeeds, and the same holds for a row that is `unstarted`. The machine
//! does not know how environments are called: it drives a [`Rows`], which shards of Python
//! environments and shards of native environments implement.
//!
//! A failure is first passed to [`Rows::replace`]. If that replaces the failed environment, the
//! step counts as truncated ([`Transition::CUT`]), and everything after it is as usual; a reset is
//! tried once more.
//!
//! Above 400 lines: it is one machine, and its transcript is written beside each transition.
//!
//! Source: Gymnasium 1.4.0, `gymnasium/vector/{sync,async}_vector_env.py`; the differences are
//! listed in `ARCHITECTURE.md`.

use crate::transition::PhaseTag;
use cartwheel_core::Transition;

/// When a finished row restarts. The names are Gymnasium's `AutoresetMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoresetMode {
    /// The step after the last one resets the row and ignores its action.
    NextStep,
    /// The last step itself resets the row; the terminal observation goes to `final_obs`.
    SameStep,
    /// Rows restart only when they are reset explicitly.
    Disabled,
}

/// What stepping an over row does in [`AutoresetMode::Disabled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDone {
    /// It is an error.
    Raise,
    /// The row repeats its last frame with reward 0 and its flags kept.
    Freeze,
}

/// The environments of a shard, as the machine drives them. `row` counts from 0 within the shard.
///
/// `step` and `reset` keep their observation and info back; [`Rows::publish`] writes them out.
pub trait Rows {
    /// Why a row failed.
    type Error;

    /// Steps the environment with its action of this batch.
    ///
    /// # Errors
    ///
    /// The environment's own error.
    fn step(&mut self, row: usize) -> Result<Transition, Self::Error>;

    /// Resets the environment as an autoreset does: no seed, no options.
    ///
    /// # Errors
    ///
    /// The environment's own error.
    fn reset(&mut self, row: usize) -> Result<(), Self::Error>;

    /// Copies the kept observation and info to `final_obs` and `final_info`, before a reset can
    /// overwrite what the environment still owns.
    ///
    /// # Errors
    ///
    /// When they cannot be copied.
    fn keep_final(&mut self, row: usize) -> Result<(), Self::Error>;

    /// Writes the kept observation and info to the batch.
    ///
    /// # Errors
    ///
    /// When the observation does not fit its space.
    fn publish(&mut self, row: usize) -> Result<(), Self::Error>;

    /// Writes the last observation to the batch again, without an info.
    ///
    /// # Errors
    ///
    /// When the observation does not fit its space.
    fn repeat(&mut self, row: usize) -> Result<(), Self::Error>;

    /// Replaces a failed environment by a new one, not yet reset, and keeps the last observation
    /// that the row showed. By default nothing is replaced.
    ///
    /// # Errors
    ///
    /// `failure` itself, when it is not to be replaced; or the reason why that was not possible.
    fn replace(&mut self, row: usize, failure: Self::Error) -> Result<(), Self::Error> {
        let _ = row;
        Err(failure)
    }
}

/// Why a row was not stepped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal<E> {
    /// Its environment failed, now.
    Environment(E),
    /// Its episode is over and nothing resets it.
    Over,
    /// Its environment failed earlier and has not been reset since.
    Failed,
    /// It was never reset.
    Unstarted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// With the flags of the step that ended the episode.
    Over {
        terminated: bool,
        truncated: bool,
    },
    Failed,
    Unstarted,
}

/// The complete phase of one row, for [`Autoreset::restore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedPhase(Phase);

/// The state machine of a shard: one phase for each row.
#[derive(Debug)]
pub struct Autoreset {
    mode: AutoresetMode,
    on_done: OnDone,
    phases: Vec<Phase>,
}

impl Autoreset {
    /// A machine for `rows` rows, all running. A row that was never reset is stepped as it is: its
    /// environment may refuse that, as in Gymnasium.
    pub fn new(mode: AutoresetMode, on_done: OnDone, rows: usize) -> Self {
        Self { mode, on_done, phases: vec![Phase::Running; rows] }
    }

    /// A machine for `rows` rows that are not stepped before their first explicit reset.
    pub fn unstarted(mode: AutoresetMode, on_done: OnDone, rows: usize) -> Self {
        Self { mode, on_done, phases: vec![Phase::Unstarted; rows] }
    }

    /// A machine for rows that lost their environments. `over` says which of them had finished an
    /// episode; `NEXT_STEP` resets these as usual. The others are running, and the caller that
    /// steps them reports that the episode [was cut](Transition::CUT).
    pub fn resumed(mode: AutoresetMode, on_done: OnDone, over: &[bool]) -> Self {
        let phase = |&over: &bool| match mode {
            AutoresetMode::NextStep if over => Phase::Over { terminated: false, truncated: true },
            _ => Phase::Running,
        };
        Self { mode, on_done, phases: over.iter().map(phase).collect() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.phases.len()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    /// The phase of one row.
    pub fn phase(&self, row: usize) -> PhaseTag {
        match self.phases[row] {
            Phase::Running => PhaseTag::Running,
            Phase::Over { .. } => PhaseTag::Over,
            Phase::Failed => PhaseTag::Failed,
            Phase::Unstarted => PhaseTag::Unstarted,
        }
    }

    /// Whether a step shows the last frame of the row again and does not call its environment.
    pub fn is_frozen(&self, row: usize) -> bool {
        self.mode == AutoresetMode::Disabled
            && self.on_done == OnDone::Freeze
            && matches!(self.phases[row], Phase::Over { .. })
    }

    /// The transition of a row that is not stepped: reward 0, and the flags of its last step if it
    /// is over.
    pub fn last_transition(&self, row: usize) -> Transition {
        match self.phases[row] {
            Phase::Over { terminated, truncated } => {
                Transition { reward: 0.0, terminated, truncated }
            }
            Phase::Running | Phase::Failed | Phase::Unstarted => Transition::RESET,
        }
    }

    /// Marks a row as failed: a call of its environment did not return.
    pub fn fail(&mut self, row: usize) {
        self.phases[row] = Phase::Failed;
    }

    /// The phase of one row, for restoring it later.
    pub fn save(&self, row: usize) -> SavedPhase {
        SavedPhase(self.phases[row])
    }

    /// Restores a saved phase of a row.
    pub fn restore(&mut self, row: usize, saved: SavedPhase) {
        self.phases[row] = saved.0;
    }

    /// One step of one row, with the reset that the mode requires.
    ///
    /// # Errors
    ///
    /// The environment's error, after which the row must be reset; or the reason why an over,
    /// failed or unstarted row cannot be stepped, in which case the row is unchanged.
    #[inline]
    pub fn step<R: Rows>(
        &mut self,
        rows: &mut R,
        row: usize,
    ) -> Result<Transition, Refusal<R::Error>> {
        let (outcome, next) = match (self.mode, self.phases[row]) {
            (_, Phase::Failed) => return Err(Refusal::Failed),
            (_, Phase::Unstarted) => return Err(Refusal::Unstarted),
            (AutoresetMode::NextStep, Phase::Over { .. }) => {
                (start(rows, row).map(|()| Transition::RESET), Phase::Running)
            }
            (AutoresetMode::Disabled, over @ Phase::Over { .. }) => {
                if self.on_done == OnDone::Raise {
                    return Err(Refusal::Over);
                }
                let frozen = self.last_transition(row);
                (rows.repeat(row).map(|()| frozen), over)
            }
            (mode, _) => {
                let outcome = advance(mode, rows, row);
                let next = match &outcome {
                    Ok(last) if last.is_over() && mode != AutoresetMode::SameStep => {
                        let Transition { terminated, truncated, .. } = *last;
                        Phase::Over { terminated, truncated }
                    }
                    _ => Phase::Running,
                };
                (outcome, next)
            }
        };
        self.phases[row] = if outcome.is_ok() { next } else { Phase::Failed };
        outcome.map_err(Refusal::Environment)
    }

    /// Steps or resets the environment as the machine will require, so that the next
    /// [`Autoreset::step`] of this row, called with [`Prepared`], only has to write. `None` where
    /// there is nothing to do.
    pub fn prepare<R: Rows>(&self, rows: &mut R, row: usize) -> Option<Prepared<R::Error>> {
        match (self.mode, self.phases[row]) {
            (_, Phase::Running) => Some(Prepared::Stepped(rows.step(row))),
            (AutoresetMode::NextStep, Phase::Over { .. }) => Some(Prepared::Reset(rows.reset(row))),
            (_, Phase::Over { .. } | Phase::Failed | Phase::Unstarted) => None,
        }
    }

    /// An explicit reset of one row by `reset`, which may pass a seed and options. It clears a
    /// pending autoreset, a frozen frame and a failure. `reset` also resets the replacement of a
    /// failed environment.
    ///
    /// # Errors
    ///
    /// The environment's error, after which the row must be reset again.
    pub fn reset<R: Rows>(
        &mut self,
        rows: &mut R,
        row: usize,
        reset: impl FnMut(&mut R) -> Result<(), R::Error>,
    ) -> Result<(), R::Error> {
        let outcome = start_by(rows, row, reset);
        self.phases[row] = if outcome.is_ok() { Phase::Running } else { Phase::Failed };
        outcome
    }
}

/// What an environment did before its row got a place in a batch.
#[derive(Debug)]
pub enum Prepared<E> {
    /// It was stepped.
    Stepped(Result<Transition, E>),
    /// It was reset.
    Reset(Result<(), E>),
}

/// Rows of which one environment has already been called.
#[derive(Debug)]
pub struct PreparedRows<'a, R: Rows> {
    /// The rows.
    pub rows: &'a mut R,
    /// What the environment did.
    pub prepared: Option<Prepared<R::Error>>,
}

impl<R: Rows> Rows for PreparedRows<'_, R> {
    type Error = R::Error;

    fn step(&mut self, row: usize) -> Result<Transition, R::Error> {
        match self.prepared.take() {
            Some(Prepared::Stepped(outcome)) => outcome,
            _ => self.rows.step(row),
        }
    }

    fn reset(&mut self, row: usize) -> Result<(), R::Error> {
        match self.prepared.take() {
            Some(Prepared::Reset(outcome)) => outcome,
            _ => self.rows.reset(row),
        }
    }

    fn keep_final(&mut self, row: usize) -> Result<(), R::Error> {
        self.rows.keep_final(row)
    }

    fn publish(&mut self, row: usize) -> Result<(), R::Error> {
        self.rows.publish(row)
    }

    fn repeat(&mut self, row: usize) -> Result<(), R::Error> {
        self.rows.repeat(row)
    }

    fn replace(&mut self, row: usize, failure: R::Error) -> Result<(), R::Error> {
        self.rows.replace(row, failure)
    }
}

/// An ordinary step, followed by the reset that `SAME_STEP` requires.
#[inline]
fn advance<R: Rows>(mode: AutoresetMode, rows: &mut R, row: usize) -> Result<Transition, R::Error> {
    let same_step = mode == AutoresetMode::SameStep;
    let show = |rows: &mut R, transition: Transition| {
        if same_step && transition.is_over() { rows.keep_final(row) } else { rows.publish(row) }?;
        Ok(transition)
    };
    let shown = rows.step(row).and_then(|transition| show(rows, transition));
    let transition = shown.or_else(|failure| {
        rows.replace(row, failure)?;
        show(rows, Transition::CUT)
    })?;
    if same_step && transition.is_over() {
        start(rows, row)?;
    }
    Ok(transition)
}

/// Begins an episode with the machine's own reset.
fn start<R: Rows>(rows: &mut R, row: usize) -> Result<(), R::Error> {
    start_by(rows, row, |rows| rows.reset(row))
}

/// Begins an episode with `reset`, called once more if a failed environment was replaced.
fn start_by<R: Rows>(
    rows: &mut R,
    row: usize,
    mut reset: impl FnMut(&mut R) -> Result<(), R::Error>,
) -> Result<(), R::Error> {
    let shown = reset(rows).and_then(|()| rows.publish(row));
    shown.or_else(|failure| {
        rows.replace(row, failure)?;
        reset(rows)?;
        rows.publish(row)
    })
}
