//! Plain loops: environments stepped with nothing around them, the upper limit of a pool's speed.
//!
//! A plain loop calls `step`, `reset` and `observe` of each environment in turn and stores
//! observations, rewards and flags in arrays. There is no interface: no pool, no autoreset machine,
//! no slab to acquire and release, no check of an action, no waiting.

use std::hint::black_box;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use cartwheel::__private::Arrays;
use cartwheel::{Block, Env, Error, Failure, Info, Rng, Shared, Spaces, Transition, View};

/// Batches of random actions, drawn before the time starts and replayed in turn.
const ACTION_BATCHES: usize = 64;
/// The panic of a loop whose environment fails.
const FAILS: &str = "environments in a plain loop do not fail";
/// Clock reads of a timed loop: few, because they take time too.
const CLOCK_READS: f64 = 50.0;

/// The number of loops, and how long they run.
#[derive(Debug, Clone, Copy)]
pub struct PlainLoops {
    /// Number of environments of all loops together, divided into contiguous ranges.
    pub rows: usize,
    /// Number of loops that run at once, one thread each; at most one for each environment.
    pub threads: usize,
    /// The time that they run.
    pub duration: Duration,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// Step rows with [`Env::step_block`] where it exists, as a pool does; otherwise each row with
    /// [`Env::step`].
    pub blocks: bool,
}

/// Runs the loops over environments of this kind, all at once and without waiting for each other:
/// `step`, `reset` and `observe` of each environment in turn, and nothing else.
///
/// A row whose episode is over is reset in its next turn, which counts as a step: each counted step
/// is the same work as a pool does that resets rows in the step after. Row `i` has the stream of seed
/// `i`; actions are random.
///
/// Returns environment steps per second, of all loops together.
///
/// # Errors
///
/// [`Error::BadOptions`] when there are no rows or no threads, or options are wrong.
///
/// # Panics
///
/// When an environment fails or panics, or when a thread cannot be started.
pub fn run<E: Env>(options: &str, loops: &PlainLoops) -> Result<f64, Error> {
    let PlainLoops { rows, threads, .. } = *loops;
    if rows == 0 || threads == 0 {
        return Err(Error::bad_options(format!(
            "plain loops need rows and threads, got {rows} and {threads}"
        )));
    }
    let kind = LoopKind::<E>::new(options)?;
    let made =
        dealt(rows, threads).map(|rows| PlainLoop::new(&kind, rows, loops.max_episode_steps));
    let made: Vec<_> = made.collect::<Result<_, _>>()?;
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

/// `rows` rows in contiguous ranges, as equal as possible, one for each thread that has a row.
fn dealt(rows: usize, threads: usize) -> impl Iterator<Item = Range<usize>> {
    let threads = threads.min(rows);
    (0..threads).map(move |at| at * rows / threads..(at + 1) * rows / threads)
}

/// An environment with its options.
struct LoopKind<E: Env> {
    options: E::Options,
    shared: Arc<E::Shared>,
    spaces: Spaces,
}

impl<E: Env> LoopKind<E> {
    fn new(json: &str) -> Result<Self, Error> {
        let options: E::Options = cartwheel::__private::parse(json)?;
        let shared = Arc::new(E::Shared::prepare(&options)?);
        let spaces = E::spaces(&options, &shared);
        Ok(Self { options, shared, spaces })
    }
}

struct PlainLoop<E: Env> {
    rows: LoopRows<E>,
    observations: Arrays,
    /// All batches of actions, one after the other.
    actions: Arrays,
}

/// The environments of a loop, in columns, and the results of their last step.
struct LoopRows<E: Env> {
    envs: Vec<E>,
    rngs: Vec<Rng>,
    /// Steps since the last reset.
    elapsed: Vec<u32>,
    /// Steps after which an episode is truncated; 0 for no limit.
    limit: u32,
    options: E::ResetOptions,
    rewards: Vec<f64>,
    terminations: Vec<bool>,
    truncations: Vec<bool>,
    /// Rows of the block that are not over.
    running: Vec<bool>,
    /// The results of the rows of the block.
    transitions: Vec<Option<Transition>>,
}

impl<E: Env> PlainLoop<E> {
    fn new(
        kind: &LoopKind<E>,
        rows: Range<usize>,
        limit: Option<NonZero<u32>>,
    ) -> Result<Self, Error> {
        let Spaces { observation, action } = &kind.spaces;
        let num_actions = rows.len() * ACTION_BATCHES;
        let observations = Arrays::new(observation.leaves(), rows.len());
        let mut actions = Arrays::new(action.leaves(), num_actions);
        let mut rng = Rng::from_seed(rows.start as u64);
        for number in 0..action.leaves().len() {
            actions.store(number, &action.sample(number, num_actions, &mut rng));
        }
        Ok(Self { rows: LoopRows::new(kind, rows, limit)?, observations, actions })
    }

    /// Steps for about `duration`, at least one batch, after one batch that is not timed. Returns
    /// environment steps per second.
    #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough number")]
    fn rate<const BLOCKS: bool>(&mut self, duration: Duration) -> f64 {
        let Self { rows, observations, actions } = self;
        let num_rows = rows.envs.len();
        let actions = actions.rows(E::Action::rows);
        let mut observations = observations.rows_mut(E::Observation::rows_mut);
        rows.step::<BLOCKS>(&actions, 0, &mut observations).expect(FAILS);
        let (start, mut batches, mut slice) = (Instant::now(), 0, 1);
        loop {
            for batch in batches..batches + slice {
                let first_action = batch % ACTION_BATCHES * num_rows;
                rows.step::<BLOCKS>(&actions, first_action, &mut observations).expect(FAILS);
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

impl<E: Env> LoopRows<E> {
    fn new(
        kind: &LoopKind<E>,
        rows: Range<usize>,
        limit: Option<NonZero<u32>>,
    ) -> Result<Self, Error> {
        let mut rngs: Vec<_> = rows.clone().map(|row| Rng::from_seed(row as u64)).collect();
        let envs = rows.clone().map(|_| E::new(&kind.options, &kind.shared));
        let mut envs = envs.collect::<Result<Vec<_>, _>>()?;
        let options = E::ResetOptions::default();
        for (env, rng) in envs.iter_mut().zip(&mut rngs) {
            env.reset(rng, &options).map_err(Error::bad_options)?;
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
    ) -> Result<(), Failure> {
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
                    self.envs[row].reset(&mut self.rngs[row], &self.options)?;
                    self.elapsed[row] = 0;
                } else {
                    let stepped = if BLOCKS { self.transitions[row - first] } else { None };
                    transition = if let Some(transition) = stepped {
                        transition
                    } else {
                        let action = E::Action::row(actions, first_action + row);
                        self.envs[row].step(action, &mut self.rngs[row])?
                    };
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
        Ok(())
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
        E::step_block(&mut Block::new(
            (&mut self.envs[rows.clone()], &mut self.rngs[rows.clone()]),
            &self.running[..rows.len()],
            &mut self.transitions[..rows.len()],
            (actions, first_action + rows.start),
        ));
    }
}
