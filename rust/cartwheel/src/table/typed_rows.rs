//! Environments of one kind, and the loop that steps them.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cartwheel_abi as abi;
use cartwheel_core::info::RecordKind;
use cartwheel_core::rng::Rng;
use cartwheel_core::{Error, Transition, drop_payload};

use super::batch_call::BatchCall;
use super::guard::{Refusal, guarded, guarded_drop};
use super::typed_kind::TypedKind;
use crate::Failure;
use crate::env::{Block, Env, Info, View};

/// Environments of one kind.
pub(super) struct TypedRows<E: Env> {
    pub(super) kind: Arc<TypedKind<E>>,
    pub(super) envs: Vec<E>,
    pub(super) options: E::ResetOptions,
    ahead: Ahead,
}

/// A block that was stepped before the loop reaches its rows.
#[derive(Debug, Default)]
struct Ahead {
    running: Vec<bool>,
    transitions: Vec<Option<Transition>>,
    /// Its rows, counted from the first row of the `TypedRows`.
    rows: Range<usize>,
}

/// Progress of a call. A panic leaves it as it was when it happened.
#[derive(Debug)]
pub(super) struct Progress {
    /// The row that is being stepped, counted from the first of the call.
    pub(super) next: Cell<usize>,
    /// Length of the info stream up to the last complete record.
    pub(super) infos: Cell<usize>,
}

impl<E: Env> TypedRows<E> {
    /// `count` environments. Called guarded.
    pub(super) fn new(kind: Arc<TypedKind<E>>, count: usize) -> Result<Self, Error> {
        let (running, transitions) = if E::BLOCK > 1 {
            (vec![false; E::BLOCK], vec![None; E::BLOCK])
        } else {
            (Vec::new(), Vec::new())
        };
        let ahead = Ahead { running, transitions, rows: 0..0 };
        let (envs, options) = (Vec::with_capacity(count), E::ResetOptions::default());
        let mut rows = Self { kind, envs, options, ahead };
        for _ in 0..count {
            rows.envs.push(rows.kind.make()?);
        }
        Ok(rows) // if it is dropped before, its environments are dropped one by one
    }

    /// Replaces the environment of a row by a new one. A panic of the old one's destructor is
    /// reported, but the row is new.
    pub(super) fn replace(&mut self, row: usize) -> Result<(), Refusal> {
        let new = guarded(|| self.kind.make())?;
        let old = std::mem::replace(&mut self.envs[row], new);
        guarded(|| {
            drop(old);
            Ok::<_, Failure>(())
        })
    }

    /// Carries out a call from row `progress.next` on.
    ///
    /// # Errors
    ///
    /// The failure of row `progress.next`.
    pub(super) fn run(
        &mut self,
        call: &mut BatchCall<'_, E>,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let start = progress.next.get();
        // The rest of a block that was stepped belongs to a call that continues another one. A call
        // without steps may come between the two, to reset the row that failed.
        let blocks = E::BLOCK > 1 && call.steps;
        if blocks && start == 0 {
            self.ahead.rows = 0..0;
        }
        let mut at = start;
        while at < call.commands.len() {
            if call.commands[at] == abi::LEAVE {
                let rest = &call.commands[at..];
                at += rest.iter().position(|&command| command != abi::LEAVE).unwrap_or(rest.len());
                continue;
            }
            progress.next.set(at);
            let end = if blocks { self.step_ahead(call, at) } else { at + 1 };
            while at < end {
                at = self.write_block(call, at..end, progress)?;
                if at == end {
                    break;
                }
                progress.next.set(at);
                self.one(call, at, progress)?;
                at += 1;
            }
        }
        progress.next.set(at);
        Ok(())
    }

    /// Forgets the block that was stepped ahead if the calls have passed its last row: a later step
    /// must not take its transitions. `row` is the next one, counted as `Ahead::rows`.
    #[inline]
    pub(super) fn passed(&mut self, row: usize) {
        if E::BLOCK > 1 && row >= self.ahead.rows.end {
            self.ahead.rows = 0..0;
        }
    }

    /// Steps the block that begins at row `at`, unless that row was stepped with an earlier block, or is
    /// alone: to make a block of it takes as long as a cheap step. Returns the row after the block.
    #[inline]
    fn step_ahead(&mut self, call: &mut BatchCall<'_, E>, at: usize) -> usize {
        let rows = call.commands.len();
        if self.ahead.rows.contains(&(call.first + at)) {
            return rows.min(self.ahead.rows.end - call.first);
        }
        let end = rows.min(at + E::BLOCK);
        if end > at + 1 {
            self.step_block(call, at..end);
        }
        end
    }

    #[inline(never)] // called once for each block; the loop of rows stays small
    fn step_block(&mut self, call: &mut BatchCall<'_, E>, rows: Range<usize>) {
        let Ahead { running, transitions, .. } = &mut self.ahead;
        let (running, transitions) = (&mut running[..rows.len()], &mut transitions[..rows.len()]);
        let mut any = false;
        for (running, &command) in running.iter_mut().zip(&call.commands[rows.clone()]) {
            *running = command == abi::STEP;
            any |= *running;
        }
        if !any {
            return; // keeps the rest of a block that is continued later
        }
        // Eight at a time: a loop over single ones is not unrolled.
        let (eights, rest) = transitions.as_chunks_mut();
        for eight in eights {
            *eight = [None; 8];
        }
        rest.fill(None);
        let own = call.first + rows.start..call.first + rows.end;
        let envs = (&mut self.envs[own.clone()], &mut call.rngs[rows.clone()]);
        let mut block = Block::new(envs, running, transitions, (&call.actions, rows.start));
        // A row that panics here panics again when it is stepped by itself, and is identified then.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| E::step_block(&mut block))) {
            drop_payload(payload);
        }
        self.ahead.rows = own;
    }

    /// Writes the results of rows that were stepped with their block, and resets those between them; up
    /// to the first row that needs more, which it returns. A loop over columns takes half the instructions
    /// of [`TypedRows::one`] for each row, and to leave it and to begin it again takes more than either.
    #[inline]
    fn write_block(
        &mut self,
        call: &mut BatchCall<'_, E>,
        rows: Range<usize>,
        progress: &Progress,
    ) -> Result<usize, Failure> {
        let own = call.first + rows.start..call.first + rows.end;
        let Ahead { transitions, rows: ahead, .. } = &self.ahead;
        if E::BLOCK == 1 || !E::Info::EMPTY || !ahead.contains(&own.start) {
            return Ok(rows.start);
        }
        let options = call.reset_options.unwrap_or(&self.options);
        let transitions = &transitions[own.start - ahead.start..own.end - ahead.start];
        let stepped = call.commands[rows.clone()].iter().zip(transitions);
        let flags = call.terminations[rows.clone()].iter_mut();
        let flags = flags.zip(&mut call.truncations[rows.clone()]);
        let results = call.rewards[rows.clone()].iter_mut().zip(flags);
        let columns = stepped.zip(&mut self.envs[own]).zip(results);
        for (at, (((&command, &stepped), env), results)) in rows.clone().zip(columns) {
            progress.next.set(at); // an environment may panic
            let transition = match (command, stepped) {
                (abi::STEP, Some(transition)) => transition,
                (abi::RESET, _) => {
                    reset(env, &mut call.rngs[at], options)?;
                    Transition::RESET
                }
                _ => return Ok(at),
            };
            let (reward, (terminated, truncated)) = results;
            *reward = transition.reward;
            *terminated = u8::from(transition.terminated);
            *truncated = u8::from(transition.truncated);
            env.observe(E::Observation::row_mut(&mut call.observations, at));
        }
        Ok(rows.end)
    }

    /// Carries out the command of one row.
    #[inline]
    fn one(
        &mut self,
        call: &mut BatchCall<'_, E>,
        row: usize,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let own = call.first + row;
        let transition = match call.commands[row] {
            abi::STEP => {
                let stepped = if E::BLOCK > 1 && self.ahead.rows.contains(&own) {
                    self.ahead.transitions[own - self.ahead.rows.start]
                } else {
                    None
                };
                match stepped {
                    Some(transition) => transition,
                    None if E::BLOCK > 1 => self.step_alone(call, row)?,
                    None => self.step_one(call, row)?,
                }
            }
            abi::RESET => {
                let options = call.reset_options.unwrap_or(&self.options);
                reset(&mut self.envs[own], &mut call.rngs[row], options)?;
                Transition::RESET
            }
            abi::LEAVE => return Ok(()),
            abi::SHOW => {
                self.observe(call, row);
                return Ok(());
            }
            other => unknown(other),
        };
        call.rewards[row] = transition.reward;
        call.terminations[row] = u8::from(transition.terminated);
        call.truncations[row] = u8::from(transition.truncated);
        self.observe(call, row);
        if !E::Info::EMPTY {
            let info = self.envs[own].info();
            if !info.is_empty() {
                let record = call.infos.begin(RecordKind::Info, call.info_row + row, 0);
                info.write(&mut call.infos);
                call.infos.end(record);
                progress.infos.set(call.infos.stream().len());
            }
        }
        Ok(())
    }

    #[inline]
    fn step_one(&mut self, call: &mut BatchCall<'_, E>, row: usize) -> Result<Transition, Failure> {
        let action = E::Action::row(&call.actions, row);
        let (own, following) = self.envs[call.first + row..].split_at_mut(1);
        own[0].step_before(action, &mut call.rngs[row], following.first())
    }

    #[inline(never)] // rarely called where blocks are stepped; the loop of rows stays small
    fn step_alone(
        &mut self,
        call: &mut BatchCall<'_, E>,
        row: usize,
    ) -> Result<Transition, Failure> {
        self.step_one(call, row)
    }

    #[inline]
    fn observe(&mut self, call: &mut BatchCall<'_, E>, row: usize) {
        let place = E::Observation::row_mut(&mut call.observations, row);
        self.envs[call.first + row].observe(place);
    }
}

#[inline(never)] // called once for each episode; the loops of rows stay small
fn reset<E: Env>(env: &mut E, rng: &mut Rng, options: &E::ResetOptions) -> Result<(), Failure> {
    env.reset(rng, options)
}

#[cold]
fn unknown(command: u8) -> ! {
    panic!("the host gave the command {command}, which this plugin does not know")
}

impl<E: Env> Drop for TypedRows<E> {
    /// Ends the environments, one by one: if a second destructor panicked while the panic of the
    /// first is unwinding, the process would end.
    fn drop(&mut self) {
        self.envs.drain(..).for_each(guarded_drop);
    }
}
