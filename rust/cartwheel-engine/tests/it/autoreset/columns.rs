//! A driver of the machine: environments in columns, called span by span.

use std::ops::Range;

use cartwheel_engine::autoreset::{Autoreset, Outcomes, Refusal, RowCommand};
use cartwheel_engine::{PhaseTag, Transition};

use super::script::Scripted;

/// Results of one row, apart from the calls of its environment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) transition: Transition,
    pub(crate) phase: PhaseTag,
    /// Reason why the environment failed, or the step was refused.
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    Environment(String),
    Refused(Refusal),
}

pub(crate) struct Columns {
    pub(crate) machine: Autoreset,
    pub(crate) envs: Vec<Scripted>,
}

/// The columns of one task. At first they contain what another batch left there.
struct Buffers {
    rewards: Vec<f64>,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
    phases: Vec<u8>,
    /// Whether the environment was replaced in a step.
    cut: Vec<bool>,
}

impl Buffers {
    fn new(rows: usize) -> Self {
        let dirt = vec![255; rows];
        let (terminations, truncations, phases) = (dirt.clone(), dirt.clone(), dirt);
        let (rewards, cut) = (vec![f64::NAN; rows], vec![false; rows]);
        Self { rewards, terminations, truncations, phases, cut }
    }

    fn outcomes(&mut self) -> Outcomes<'_> {
        Outcomes {
            rewards: &mut self.rewards,
            terminations: &mut self.terminations,
            truncations: &mut self.truncations,
            phases: &mut self.phases,
        }
    }
}

impl Columns {
    /// Steps the rows of `span`.
    pub(crate) fn step(&mut self, span: Range<usize>) -> Vec<Row> {
        let mut commands = vec![9; span.len()];
        self.machine.plan(span.clone(), &mut commands);
        let refused: Vec<_> = self.machine.refusals(span.clone()).collect();
        for &(row, refusal) in &refused {
            assert_eq!(self.machine.refusal(row), Some(refusal));
            let command = commands[row - span.start];
            assert!(command >= RowCommand::Leave as u8, "a refused row is not called: {command}");
            commands[row - span.start] = RowCommand::Leave as u8;
        }
        let mut faults: Vec<_> = vec![None; span.len()];
        for (row, refusal) in refused {
            faults[row - span.start] = Some(Fault::Refused(refusal));
        }
        self.carry_out(span, commands, faults)
    }

    /// Resets the rows of `span` for which `mask` is true; the others show their frame again.
    pub(crate) fn reset(&mut self, span: Range<usize>, mask: impl Fn(usize) -> bool) -> Vec<Row> {
        let command = |row| if mask(row) { RowCommand::Reset } else { RowCommand::Show } as u8;
        let commands = span.clone().map(command).collect();
        self.carry_out(span.clone(), commands, vec![None; span.len()])
    }

    fn carry_out(
        &mut self,
        span: Range<usize>,
        mut commands: Vec<u8>,
        mut faults: Vec<Option<Fault>>,
    ) -> Vec<Row> {
        let mut buffers = Buffers::new(span.len());
        let (mut now, mut sums) = (commands.clone(), vec![0.0; span.len()]);
        for left in (0..self.machine.rules().action_repeat.get()).rev() {
            self.round(&span, &mut now, &mut faults, &mut buffers);
            for (command, now) in commands.iter_mut().zip(&now) {
                *command = if *now == RowCommand::Show as u8 { *now } else { *command };
            }
            if left == 0
                || !self.machine.settle_repeated(
                    span.clone(),
                    &mut now,
                    &buffers.outcomes(),
                    &mut sums,
                )
            {
                break;
            }
        }
        for at in 0..span.len() {
            let whole = commands[at] == RowCommand::Step as u8 && !buffers.cut[at];
            buffers.rewards[at] += if whole { sums[at] } else { 0.0 };
        }
        self.machine.settle(span.clone(), &commands, &mut buffers.outcomes());
        let mut resets = vec![9; span.len()];
        if self.machine.plan_resets(span.clone(), &mut resets) {
            for (at, row) in span.clone().enumerate() {
                if resets[at] != RowCommand::Reset as u8 {
                    continue;
                }
                let env = &mut self.envs[row];
                env.keep_final();
                if let Err(failure) = start(env) {
                    self.machine.fail(row);
                    resets[at] = RowCommand::Show as u8;
                    (commands[at], faults[at]) =
                        (RowCommand::Show as u8, Some(Fault::Environment(failure)));
                }
            }
            self.machine.settle_resets(span.clone(), &resets, &mut buffers.outcomes());
        }
        for (at, row) in span.clone().enumerate() {
            if commands[at] <= RowCommand::Reset as u8 {
                self.envs[row].publish();
            }
        }
        let rows = span.enumerate().zip(faults);
        rows.map(|((at, row), fault)| {
            let phase = self.machine.phase(row);
            assert_eq!(buffers.phases[at], phase as u8, "the column of phases");
            let transition = Transition {
                reward: buffers.rewards[at],
                terminated: buffers.terminations[at] == 1,
                truncated: buffers.truncations[at] == 1,
            };
            Row { transition, phase, fault }
        })
        .collect()
    }

    /// Carries out the commands once.
    fn round(
        &mut self,
        span: &Range<usize>,
        commands: &mut [u8],
        faults: &mut [Option<Fault>],
        buffers: &mut Buffers,
    ) {
        for (at, row) in span.clone().enumerate() {
            let env = &mut self.envs[row];
            let called = match RowCommand::from_byte(commands[at]) {
                RowCommand::Step => env.step().or_else(|failure| {
                    env.replace(failure)?;
                    buffers.cut[at] = true;
                    Ok(Transition::CUT)
                }),
                RowCommand::Reset => start(env),
                RowCommand::Show => {
                    env.repeat();
                    continue;
                }
                RowCommand::Leave => continue,
            };
            match called {
                Ok(Transition { reward, terminated, truncated }) => {
                    buffers.rewards[at] = reward;
                    // Any byte but 0 is true.
                    buffers.terminations[at] = u8::from(terminated) * 3;
                    buffers.truncations[at] = u8::from(truncated) * 128;
                }
                Err(failure) => {
                    self.machine.fail(row);
                    (commands[at], faults[at]) =
                        (RowCommand::Show as u8, Some(Fault::Environment(failure)));
                }
            }
        }
    }
}

/// Resets an environment; once more if it failed and was replaced.
fn start(env: &mut Scripted) -> Result<Transition, String> {
    env.reset().or_else(|failure| {
        env.replace(failure)?;
        env.reset()
    })?;
    Ok(Transition::RESET)
}
