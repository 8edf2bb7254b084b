//! Checks of many environments: each row does what an environment alone does.

use std::ops::Range;
use std::sync::Arc;

use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::plugin::EnvKind;

use super::STEPS;
use super::error::{Finding, fail};
use super::life::{Event, compare};
use super::subject::Subject;
use crate::env::{Env, View};
use crate::vector::{
    Batch, FINAL_INFO, FINAL_OBS, InfoRow, Reset, Seed, VectorEnv, VectorError, kind,
};
use crate::{Error, Rng};

/// The most rows of a check.
const MAX: usize = 17;

/// Environments of the kind under test, and the lives of single ones with the seeds from 0 on.
pub(super) struct Vectors<E: Env> {
    names: Vec<(String, Range<usize>)>,
    limit: u32,
    kind: Arc<EnvKind>,
    lives: Vec<Vec<Event>>,
    actions: Vec<Vec<<E::Action as View>::Owned>>,
}

/// The visible state of rows.
struct Play {
    events: Vec<Vec<Event>>,
    /// Steps of each row.
    done: Vec<usize>,
    over: Vec<bool>,
}

impl<E: Env> Vectors<E> {
    pub(super) fn new(subject: Subject<E>) -> Result<Self, Finding> {
        let seeds = 0..MAX as u64;
        let lives = seeds.clone().map(|seed| subject.life(seed)).collect::<Result<_, _>>()?;
        let actions = seeds.map(|seed| subject.owned_actions(seed)).collect();
        let Subject { names, limit, options, .. } = subject;
        let kind = kind::<E>(options, false).or_else(|error| {
            fail(error, "The options must be valid, and `new` must depend on them alone.")
        })?;
        Ok(Self { names, limit, kind, lives, actions })
    }

    fn made(
        &self,
        rows: usize,
        threads: usize,
        mode: AutoresetMode,
        batch_size: usize,
    ) -> Result<VectorEnv<E>, VectorError> {
        VectorEnv::builder(rows)
            .threads(threads)
            .autoreset(mode)
            .batch_size(batch_size)
            .max_episode_steps(self.limit)
            .build_of(&self.kind)
    }

    /// Neither the number of rows nor that of threads matters.
    pub(super) fn rows(&self) -> Result<(), Finding> {
        let blocks = E::BLOCK.min(MAX - 1) + 1; // a block, and a row next to it
        for (rows, threads) in [(1, 1), (3, 1), (7, 2), (MAX, 3), (blocks, 1), (blocks, 2)] {
            let play = self.play(rows, threads, AutoresetMode::NextStep);
            self.compare(play, &format!("{rows} rows and {threads} threads"))?;
        }
        Ok(())
    }

    /// All autoreset modes show the same episodes.
    pub(super) fn modes(&self) -> Result<(), Finding> {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
            for threads in [1, 2] {
                self.compare(
                    self.play(6, threads, mode),
                    &format!("mode {mode:?}, {threads} threads"),
                )?;
            }
        }
        Ok(())
    }

    /// Rows that are sent and received are those of `step`.
    pub(super) fn send_recv(&self) -> Result<(), Finding> {
        for (threads, batch_size) in [(1, 8), (2, 3)] {
            let places = format!("rows sent and received in batches of {batch_size}");
            self.compare(self.play_sent(8, threads, batch_size), &places)?;
        }
        Ok(())
    }

    fn action(&self, row: usize, play: &Play) -> <E::Action as View>::Owned {
        self.actions[row][play.done[row].min(STEPS - 1)].clone()
    }

    /// Steps all rows.
    fn play(&self, rows: usize, threads: usize, mode: AutoresetMode) -> Result<Play, VectorError> {
        let mut envs = self.made(rows, threads, mode, rows)?;
        let mut play = Play::new(rows);
        play.reset(&envs.reset(Seed(0))?, |_| true)?;
        for _ in 1..STEPS {
            let actions: Vec<_> = (0..rows).map(|row| self.action(row, &play)).collect();
            play.step(&envs.step(&actions)?, mode)?;
            if mode == AutoresetMode::Disabled && play.over.contains(&true) {
                let over = play.over.clone();
                play.reset(&envs.reset(Reset::new().mask(&over))?, |row| over[row])?;
            }
        }
        Ok(play)
    }

    /// Sends some rows and receives some.
    fn play_sent(
        &self,
        rows: usize,
        threads: usize,
        batch_size: usize,
    ) -> Result<Play, VectorError> {
        let mode = AutoresetMode::NextStep;
        let mut envs = self.made(rows, threads, mode, batch_size)?;
        let (mut play, mut rng) = (Play::new(rows), Rng::from_seed(0));
        envs.send_reset(Seed(0))?;
        let (mut begun, mut idle, mut left) = (vec![false; rows], Vec::new(), rows * STEPS / 2);
        while !envs.in_flight().is_empty() {
            let batch = envs.recv()?;
            for (place, &row) in batch.rows().iter().enumerate() {
                if std::mem::replace(&mut begun[row], true) {
                    play.step_of(&batch, place, mode)?;
                } else {
                    play.reset_of(&batch, place)?;
                }
                idle.push(row);
            }
            rng.shuffle(&mut idle);
            let sent = idle.split_off(idle.len() / 2).into_iter().take(left).collect::<Vec<_>>();
            left -= sent.len();
            let actions: Vec<_> = sent.iter().map(|&row| self.action(row, &play)).collect();
            envs.send(&sent, &actions)?;
        }
        Ok(play)
    }

    fn compare(&self, play: Result<Play, VectorError>, places: &str) -> Result<(), Finding> {
        const REMEDY: &str = "Rows must not share anything that changes: no statics, no thread-locals, \
             no interior mutability in `Shared`. All randomness must come from the row's `Rng`.";
        let play = play.or_else(|error| {
            let remedy = "A step with actions of the action space must not fail.";
            fail(format!("with {places}: {error}"), remedy)
        })?;
        for (row, (events, life)) in play.events.iter().zip(&self.lives).enumerate() {
            compare(events, life, &self.names, REMEDY, |field, at| {
                format!(
                    "with {places}, {field} of row {row} differs from that of an environment alone, in event {at}"
                )
            })?;
        }
        Ok(())
    }
}

impl Play {
    fn new(rows: usize) -> Self {
        Self { events: vec![Vec::new(); rows], done: vec![0; rows], over: vec![false; rows] }
    }

    /// A batch of a reset of some rows.
    fn reset<E: Env>(
        &mut self,
        batch: &Batch<E>,
        is_reset: impl Fn(usize) -> bool,
    ) -> Result<(), Error> {
        (0..batch.len()).filter(|row| is_reset(*row)).try_for_each(|row| self.reset_of(batch, row))
    }

    /// A batch of a step of all rows.
    fn step<E: Env>(&mut self, batch: &Batch<E>, mode: AutoresetMode) -> Result<(), Error> {
        (0..batch.len()).try_for_each(|row| self.step_of(batch, row, mode))
    }

    fn reset_of<E: Env>(&mut self, batch: &Batch<E>, place: usize) -> Result<(), Error> {
        let row = batch.rows()[place];
        let info = info(&batch.infos()?.row(place));
        let observation = batch.observation_bytes(place);
        let (terminated, truncated) = (false, false);
        let is_reset = true;
        let event = Event { is_reset, observation, reward: 0, terminated, truncated, info };
        self.events[row].push(event);
        self.over[row] = false;
        Ok(())
    }

    fn step_of<E: Env>(
        &mut self,
        batch: &Batch<E>,
        place: usize,
        mode: AutoresetMode,
    ) -> Result<(), Error> {
        let row = batch.rows()[place];
        let was_over = std::mem::replace(&mut self.over[row], batch.is_over(place));
        let finals = batch.finals()?;
        let (observation, own) = match finals.observation_bytes(place) {
            Some(last) => (last, finals.info(place).map(info).unwrap_or_default()),
            None => (batch.observation_bytes(place), info(&batch.infos()?.row(place))),
        };
        self.events[row].push(Event {
            is_reset: was_over && mode == AutoresetMode::NextStep,
            observation,
            reward: batch.rewards()[place].to_bits(),
            terminated: batch.terminations()[place],
            truncated: batch.truncations()[place],
            info: own,
        });
        self.done[row] += usize::from(!(was_over && mode == AutoresetMode::NextStep));
        if mode == AutoresetMode::SameStep && self.over[row] {
            self.reset_of(batch, place)?;
        }
        Ok(())
    }
}

/// The keys of an info, without what the engine adds, and the bytes of their values.
fn info(info: &InfoRow<'_>) -> Vec<(String, Vec<u8>)> {
    let own = info.keys().filter(|key| ![FINAL_OBS, FINAL_INFO].contains(key));
    own.map(|key| (key.to_owned(), info.value(key).unwrap_or_default().to_vec())).collect()
}
