//! Plain loops: environments stepped with nothing around them, the upper limit of a pool's speed.
//!
//! A plain loop calls `step`, `reset` and `observe` of each environment in turn and stores
//! observations, rewards and flags in arrays. There is no interface: no pool, no autoreset machine,
//! no slab to acquire and release, no check of an action, no waiting.
//!
//! # Invariants
//!
//! 1. The memories of a plain loop are made for it and have neither a pool nor workers, so the
//!    rows of their slabs and their actions are the loop's alone.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants")]

use std::hint::black_box;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::env::{Block, Env, Info, View};
use crate::error::Error;
use crate::memory::{ActionRows, Plan};
use crate::native::Recipe;
use crate::protocol::Memory;
use crate::schedule::shards;
use crate::space::ActionTag;
use crate::wake::{Op, Scope};
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

/// Batches of random actions, drawn before the time starts and replayed in turn.
const ACTION_BATCHES: usize = 64;
/// How often a timed loop reads the clock: rarely, because that takes time too.
const CLOCK_READS: f64 = 50.0;

/// The number of loops, and how long they run.
#[derive(Debug, Clone, Copy)]
pub struct PlainLoops {
    /// Number of environments of all loops together, divided into contiguous ranges.
    pub rows: usize,
    /// Number of loops that run at once, one thread each; at most one for each environment.
    pub threads: usize,
    /// How long they run.
    pub duration: Duration,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// Step rows with [`Env::step_block`] where it exists, as a pool does; otherwise each row with
    /// [`Env::step`].
    pub blocks: bool,
}

impl PlainLoops {
    /// Runs the loops over environments of this kind, all at once and without waiting for each
    /// other: `step`, `reset` and `observe` of each environment in turn, and nothing else.
    ///
    /// A row whose episode is over is reset in its next turn, which counts as a step: each counted
    /// step is the same work as in [`NextStep`](crate::autoreset::AutoresetMode::NextStep). Row `i`
    /// has the stream of seed `i`; actions are random.
    ///
    /// Returns environment steps per second, of all loops together.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when there are no rows or no threads, [`Error::Os`] when there is no memory.
    ///
    /// # Panics
    ///
    /// When an environment panics, or when a thread cannot be started.
    pub fn run<E: Env>(&self, recipe: &Recipe<E>) -> Result<f64, Error> {
        run(recipe, self)
    }
}

fn run<E: Env>(recipe: &Recipe<E>, loops: &PlainLoops) -> Result<f64, Error> {
    let PlainLoops { rows, threads, .. } = *loops;
    if rows == 0 || threads == 0 {
        return Err(Error::BadPlan(format!(
            "plain loops need rows and threads, got {rows} and {threads}"
        )));
    }
    let deal = shards(rows, threads).into_iter();
    let made: Vec<_> = deal
        .map(|rows| PlainLoop::new(recipe, rows, loops.max_episode_steps))
        .collect::<Result<_, _>>()?;
    let start = Barrier::new(made.len());
    let rate = |mut plain: PlainLoop<E>| {
        start.wait();
        if loops.blocks && E::BLOCK > 1 {
            plain.rate::<true>(loops.duration)
        } else {
            plain.rate::<false>(loops.duration)
        }
    };
    Ok(std::thread::scope(|scope| {
        let run = |plain| scope.spawn(move || rate(plain));
        let threads: Vec<_> = made.into_iter().map(run).collect();
        let rates = threads.into_iter().map(|thread| match thread.join() {
            Ok(rate) => rate,
            Err(panic) => resume_unwind(panic),
        });
        rates.sum()
    }))
}

/// One loop.
struct PlainLoop<E: Env> {
    rows: Rows<E>,
    /// Memory with the layout that environments use. It has no pool, so only this loop uses its
    /// first slab.
    observations: Memory,
    /// All batches of actions, one after the other.
    actions: Memory,
}

/// The environments of a loop, in columns, and the results of their last step.
struct Rows<E: Env> {
    envs: Vec<E>,
    rngs: Vec<Rng>,
    /// Steps since the last reset.
    elapsed: Vec<u32>,
    /// Steps after which an episode is truncated; 0 for no limit.
    limit: u32,
    /// Options of resets.
    options: E::ResetOptions,
    rewards: Vec<f64>,
    terminations: Vec<bool>,
    truncations: Vec<bool>,
    /// Which rows of the block are not over.
    running: Vec<bool>,
    /// The results of the rows of the block.
    transitions: Vec<Option<Transition>>,
}

impl<E: Env> PlainLoop<E> {
    fn new(
        recipe: &Recipe<E>,
        rows: Range<usize>,
        limit: Option<NonZero<u32>>,
    ) -> Result<Self, Error> {
        let spaces = &recipe.spaces;
        let memory = |observations, actions, rows| {
            let shards = vec![0..rows; 1];
            let (batch_size, max_slabs, info_bytes) = (rows, 2, 0);
            let plan = Plan { observations, actions, shards, batch_size, max_slabs, info_bytes };
            Memory::new(plan, Scope::Private)
        };
        let num_actions = rows.len() * ACTION_BATCHES;
        let observations = memory(spaces.observation.leaves(), Vec::new(), rows.len())?;
        let actions = memory(Vec::new(), spaces.action.leaves(), num_actions)?;
        let mut rng = Rng::from_seed(rows.start as u64);
        for (number, leaf) in spaces.action.leaves().iter().enumerate() {
            let elements = spaces.action.sample(number, num_actions, &mut rng);
            let (area, tag) = (&actions.actions, ActionTag::Array(leaf.dtype));
            let fill = |room: &mut [u8]| room.copy_from_slice(&elements);
            // SAFETY: nothing is being stepped (invariant 1).
            unsafe { area.store(number, tag, area.all_rows(), fill) }
        }
        Ok(Self { rows: Rows::new(recipe, rows, limit)?, observations, actions })
    }

    /// Steps for about `duration`, at least one batch, after one batch that is not timed. Returns
    /// environment steps per second.
    #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough number")]
    fn rate<const BLOCKS: bool>(&mut self, duration: Duration) -> f64 {
        let (rows, num_rows) = (&mut self.rows, self.observations.plan().rows());
        // SAFETY: nobody else knows this memory; `&mut self` makes it the only claim (invariant 1).
        let mut slab = unsafe { self.observations.slabs.claim(0, 0..num_rows) };
        let mut observations = E::Observation::rows_mut(&mut slab.columns());
        let batches_of_actions = 0..num_rows * ACTION_BATCHES;
        // SAFETY: no actions are stored after `new` (invariant 1).
        let actions =
            unsafe { ActionRows::new(&self.actions.actions, batches_of_actions, Op::Step) };
        let actions =
            E::Action::rows(&mut actions.columns()).expect("stored as the space has them");
        rows.step::<BLOCKS>(&actions, 0, &mut observations);
        let (start, mut batches, mut slice) = (Instant::now(), 0, 1);
        loop {
            for batch in batches..batches + slice {
                let first_action = batch % ACTION_BATCHES * num_rows;
                rows.step::<BLOCKS>(&actions, first_action, &mut observations);
                black_box(&mut *rows); // the compiler must assume that all stored values are read
            }
            batches += slice;
            let elapsed = start.elapsed();
            if elapsed >= duration {
                return (batches * num_rows) as f64 / elapsed.as_secs_f64();
            }
            let speed = batches as f64 / elapsed.as_secs_f64();
            let fitting = speed * duration.as_secs_f64() / CLOCK_READS;
            slice = (2 * slice).min(fitting as usize).max(1);
        }
    }
}

impl<E: Env> Rows<E> {
    fn new(
        recipe: &Recipe<E>,
        rows: Range<usize>,
        limit: Option<NonZero<u32>>,
    ) -> Result<Self, Error> {
        let mut rngs: Vec<_> = rows.clone().map(|row| Rng::from_seed(row as u64)).collect();
        let envs = rows.clone().map(|_| E::new(&recipe.options));
        let mut envs = envs.collect::<Result<Vec<_>, _>>()?;
        let options = E::ResetOptions::default();
        for (env, rng) in envs.iter_mut().zip(&mut rngs) {
            env.reset(rng, &options);
        }
        Ok(Self {
            envs,
            rngs,
            elapsed: vec![0; rows.len()],
            limit: limit.map_or(0, NonZero::get),
            options,
            rewards: vec![0.0; rows.len()],
            terminations: vec![false; rows.len()],
            truncations: vec![false; rows.len()],
            running: vec![false; E::BLOCK],
            transitions: vec![None; E::BLOCK],
        })
    }

    /// Whether the episode of a row is over, so that it has to be reset.
    #[inline]
    fn is_over(&self, row: usize) -> bool {
        self.terminations[row] || self.truncations[row]
    }

    /// One batch, whose actions begin at `first_action`: every row with [`Env::step`]; with
    /// `BLOCKS` with [`Env::step_block`], except for rows that it leaves out.
    #[inline]
    fn step<const BLOCKS: bool>(
        &mut self,
        actions: &<E::Action as View>::Rows<'_>,
        first_action: usize,
        observations: &mut <E::Observation as View>::RowsMut<'_>,
    ) {
        let rows = self.envs.len();
        let block = if BLOCKS { E::BLOCK } else { rows };
        for first in (0..rows).step_by(block) {
            let block = first..rows.min(first + block);
            if BLOCKS {
                self.step_block(block.clone(), actions, first_action);
            }
            for row in block {
                let mut transition = Transition::RESET;
                if self.is_over(row) {
                    self.envs[row].reset(&mut self.rngs[row], &self.options);
                    self.elapsed[row] = 0;
                } else {
                    let stepped = if BLOCKS { self.transitions[row - first] } else { None };
                    transition = stepped.unwrap_or_else(|| {
                        let action = E::Action::row(actions, first_action + row);
                        self.envs[row].step(action, &mut self.rngs[row])
                    });
                    self.elapsed[row] += 1;
                    transition.truncated |= self.elapsed[row] == self.limit;
                }
                self.rewards[row] = transition.reward;
                self.terminations[row] = transition.terminated;
                self.truncations[row] = transition.truncated;
                self.envs[row].observe(E::Observation::row_mut(observations, row));
                if !E::Info::EMPTY {
                    black_box(self.envs[row].info());
                }
            }
        }
    }

    fn step_block(
        &mut self,
        rows: Range<usize>,
        actions: &<E::Action as View>::Rows<'_>,
        first_action: usize,
    ) {
        for (at, row) in rows.clone().enumerate() {
            self.running[at] = !self.is_over(row);
        }
        self.transitions[..rows.len()].fill(None);
        E::step_block(&mut Block {
            envs: &mut self.envs[rows.clone()],
            rngs: &mut self.rngs[rows.clone()],
            running: &self.running[..rows.len()],
            transitions: &mut self.transitions[..rows.len()],
            actions,
            first: first_action + rows.start,
        });
    }
}
