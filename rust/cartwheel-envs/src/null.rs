//! Null: an environment that does nothing useful, to measure the engine alone.
//!
//! | | |
//! |---|---|
//! | action | 0, without effect |
//! | observation | `uint8` of any shape; every element is the step count modulo 256 |
//! | reward | 0 |
//! | terminates | after `episode_steps` steps, if that is not 0 |
//! | work | `work` rounds of S. K. Park and K. W. Miller's minimal standard generator in each step |
//!
//! Work is counted in rounds and not in microseconds, so that the time for which a thread is
//! suspended does not count as work. With `work_spread` *s* each step draws its work uniformly from
//! `work` · [1 − *s*, 1 + *s*).

use std::hint::black_box;
use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, Flat, NoOptions, Rng, Space, Spaces, Transition, options,
};

options! {
    /// Keywords.
    pub struct Options {
        /// Shape of an observation.
        shape: Vec<usize> = vec![1],
        /// Length of an episode; 0 for endless episodes.
        episode_steps: u64,
        /// Rounds of computation in a step.
        work: u64,
        /// Maximum deviation of the computation of a step from work, as a fraction from 0 to 1.
        work_spread: f64,
    }
}

/// An environment without a task.
#[derive(Debug, Clone)]
pub struct Null {
    steps: u64,
    episode_steps: u64,
    work: u64,
    work_spread: f64,
}

/// Computes for `rounds` rounds; each round depends on the one before.
fn compute(rounds: u64) -> u64 {
    (0..rounds).fold(1, |value, _| value * 48_271 % 2_147_483_647)
}

impl Null {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough number")]
    #[expect(clippy::cast_precision_loss, reason = "likewise")]
    fn drawn_work(&self, rng: &mut Rng) -> u64 {
        if self.work_spread == 0.0 {
            return self.work;
        }
        (self.work as f64 * rng.uniform(1.0 - self.work_spread, 1.0 + self.work_spread)) as u64
    }
}

impl Env for Null {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Flat<u8>;
    type Info = ();
    type Shared = ();

    fn spaces(options: &Options, (): &()) -> Spaces {
        let observation = Space::integer_box(DType::U8, &options.shape, 0, 255);
        Spaces { observation, action: Space::discrete(1) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let elements = options.shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if elements.is_none_or(|elements| elements > 1 << 32) {
            return Err(Error::bad_options(format!("shape {:?} is too large", options.shape)));
        }
        let Options { episode_steps, work, work_spread, .. } = *options;
        if !(0.0..=1.0).contains(&work_spread) {
            return Err(Error::bad_options(format!("work_spread is {work_spread}, not in 0..=1")));
        }
        Ok(Self { steps: 0, episode_steps, work, work_spread })
    }

    #[inline]
    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.steps = 0;
        Ok(())
    }

    #[inline]
    fn step(&mut self, _: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        if self.work > 0 {
            black_box(compute(self.drawn_work(rng)));
        }
        self.steps += 1;
        let terminated = self.steps == self.episode_steps;
        Ok(Transition { reward: 0.0, terminated, truncated: false })
    }

    #[inline]
    fn observe(&self, observation: &mut [u8]) {
        observation.fill(self.steps.to_le_bytes()[0]);
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { steps }
}
