//! The oracle: autoreset written row by row, with one call after the other.

use cartwheel_engine::autoreset::{AutoresetMode, OnDone, Refusal};
use cartwheel_engine::{PhaseTag, Transition};

use super::columns::{Fault, Row};
use super::script::Scripted;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Phase {
    Running,
    /// With the flags of the step that ended the episode.
    Over {
        terminated: bool,
        truncated: bool,
    },
    Failed,
    Unstarted,
}

/// One row: its environment, its phase and its place in the episode.
pub(crate) struct RowByRow {
    pub(crate) mode: AutoresetMode,
    pub(crate) on_done: OnDone,
    /// Steps after which an episode is truncated; 0 for no limit.
    pub(crate) limit: u32,
    pub(crate) ignores_terminations: bool,
    pub(crate) repeats: u32,
    pub(crate) phase: Phase,
    pub(crate) elapsed: u32,
    pub(crate) env: Scripted,
}

impl RowByRow {
    pub(crate) fn step(&mut self) -> Row {
        let outcome = match (self.mode, self.phase) {
            (_, Phase::Failed) => Err(Fault::Refused(Refusal::Failed)),
            (_, Phase::Unstarted) => Err(Fault::Refused(Refusal::Unstarted)),
            (AutoresetMode::NextStep, Phase::Over { .. }) => self.begin(),
            (AutoresetMode::Disabled, Phase::Over { .. }) => match self.on_done {
                OnDone::Raise => Err(Fault::Refused(Refusal::Over)),
                OnDone::Freeze => {
                    self.env.repeat();
                    Ok(self.last())
                }
            },
            (_, Phase::Running | Phase::Over { .. }) => self.advance(),
        };
        self.row(outcome)
    }

    /// An explicit reset, or none.
    pub(crate) fn reset(&mut self, masked: bool) -> Row {
        let outcome = if masked {
            self.begin()
        } else {
            self.env.repeat();
            Ok(self.last())
        };
        self.row(outcome)
    }

    /// Counts as many steps as `draw` of all numbers is of the limit.
    pub(crate) fn stagger(&mut self, draw: u64) {
        if self.limit > 0 && self.phase == Phase::Running {
            let reached =
                |steps: u32| u128::from(draw) * u128::from(self.limit) >= u128::from(steps) << 64;
            self.elapsed = (0..self.limit).rev().find(|&steps| reached(steps)).unwrap_or(0);
        }
    }

    fn advance(&mut self) -> Result<Transition, Fault> {
        let mut reward = 0.0;
        let mut stepped = Ok(Transition::RESET);
        for _ in 0..self.repeats {
            stepped = match self.env.step() {
                Ok(step) => {
                    self.elapsed += 1;
                    reward += step.reward;
                    let at_limit = self.limit != 0 && self.elapsed >= self.limit;
                    let terminated = step.terminated && !self.ignores_terminations;
                    Ok(Transition { reward, terminated, truncated: step.truncated || at_limit })
                }
                Err(failure) => self.env.replace(failure).map(|()| Transition::CUT),
            };
            if !matches!(&stepped, Ok(step) if !step.is_over()) {
                break;
            }
        }
        let last = stepped.map_err(|failure| self.fail(failure))?;
        if !last.is_over() {
            self.env.publish();
        } else if self.mode == AutoresetMode::SameStep {
            self.env.keep_final();
            self.begin()?;
        } else {
            self.env.publish();
            let Transition { terminated, truncated, .. } = last;
            self.phase = Phase::Over { terminated, truncated };
        }
        Ok(last)
    }

    /// Begins an episode.
    fn begin(&mut self) -> Result<Transition, Fault> {
        let mut outcome = self.env.reset();
        if let Err(failure) = outcome {
            outcome = self.env.replace(failure).and_then(|()| self.env.reset());
        }
        outcome.map_err(|failure| self.fail(failure))?;
        self.env.publish();
        (self.phase, self.elapsed) = (Phase::Running, 0);
        Ok(Transition::RESET)
    }

    fn fail(&mut self, failure: String) -> Fault {
        self.phase = Phase::Failed;
        Fault::Environment(failure)
    }

    fn last(&self) -> Transition {
        match self.phase {
            Phase::Over { terminated, truncated } => {
                Transition { reward: 0.0, terminated, truncated }
            }
            _ => Transition::RESET,
        }
    }

    fn row(&self, outcome: Result<Transition, Fault>) -> Row {
        let phase = match self.phase {
            Phase::Running => PhaseTag::Running,
            Phase::Over { .. } => PhaseTag::Over,
            Phase::Failed => PhaseTag::Failed,
            Phase::Unstarted => PhaseTag::Unstarted,
        };
        match outcome {
            Ok(transition) => Row { transition, phase, fault: None },
            Err(fault) => Row { transition: self.last(), phase, fault: Some(fault) },
        }
    }
}
