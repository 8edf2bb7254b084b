//! A destructor that panics fails its row at most; it ends no worker, and no call waits forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel::{Env, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_engine::Error;
use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::native::ShardSettings;

use super::PLUGIN;
use crate::support::{Envs, kind, settings};

/// Counts its steps. The action 7 lights a fuse: the destructor panics once. The action 9 panics
/// immediately.
pub(crate) struct Fused {
    steps: i64,
    fuse: Arc<AtomicBool>,
}

impl Drop for Fused {
    fn drop(&mut self) {
        assert!(!self.fuse.swap(false, Ordering::Relaxed), "the fuse was lit");
    }
}

impl Env for Fused {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(1000), action: Space::discrete(10) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self { steps: 0, fuse: Arc::default() })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.steps = 0;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        assert!(action != 9, "nine is refused");
        self.steps += 1;
        self.fuse.fetch_or(action == 7, Ordering::Relaxed);
        Ok(Transition::RESET)
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.steps;
    }

    fn info(&self) {}
}

fn envs(workers: usize, replacements: u32) -> Envs {
    let settings = ShardSettings { replacements, ..settings(AutoresetMode::NextStep) };
    let mut envs = Envs::new(&kind(&PLUGIN, "test/Fused-v0", "").unwrap(), 4, workers, settings);
    envs.seed(0);
    envs
}

#[test]
fn an_environment_that_cannot_be_dropped_fails_the_row_it_was_replaced_in() {
    for workers in [0, 2] {
        let mut envs = envs(workers, 3);
        envs.step(&[0, 7, 0, 0]).unwrap();
        let batch = envs.step(&[0, 9, 9, 0]).unwrap();
        let errors: Vec<_> = batch.faults.iter().map(|fault| fault.error.to_string()).collect();
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        let expected = "the environment of row 1 panicked: nine is refused (";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(batch.integers(0)[3], 2, "the others continue, row 2 with a new one");
        assert_eq!(batch.truncations(), [false, false, true, false]);
        let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1]));
        assert!(envs.seed(0).faults.is_empty());
        assert_eq!(envs.step(&[0; 4]).unwrap().integers(0), [1; 4]);
    }
}

#[test]
fn every_environment_is_dropped_at_the_close_even_if_destructors_panic() {
    for workers in [0, 2] {
        let mut envs = envs(workers, 0);
        envs.step(&[7; 4]).unwrap();
        let late = envs.pool.close(std::time::Duration::from_secs(5));
        assert_eq!(late, [] as [usize; 0], "every worker has ended");
    }
}
