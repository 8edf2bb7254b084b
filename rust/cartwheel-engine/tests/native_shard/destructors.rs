//! A destructor that panics fails rows; it ends no worker, and no call waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::env::{Env, NoOptions, Parameter, ParameterValue, Space, Spaces};
use cartwheel_engine::native::{Recipe, Request, ShardSettings};
use cartwheel_engine::rng::Rng;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::{Call, Error, Transition};

use super::support::{Envs, settings};

/// Counts its steps. The action 7 lights a fuse: the next destructor, of the environment or of its snapshot,
/// panics once. The action 9 panics immediately.
struct Fused {
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

    fn spaces(_: &NoOptions) -> Spaces {
        Spaces { observation: Space::discrete(1000), action: Space::discrete(10) }
    }

    fn new(_: &NoOptions) -> Result<Self, cartwheel_core::Error> {
        Ok(Self { steps: 0, fuse: Arc::default() })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) {
        self.steps = 0;
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Transition {
        assert!(action != 9, "nine is no good");
        self.steps += 1;
        self.fuse.fetch_or(action == 7, Ordering::Relaxed);
        Transition::RESET
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.steps;
    }

    fn info(&self) {}

    fn snapshot(&self) -> Option<Self> {
        Some(Self { steps: self.steps, fuse: Arc::clone(&self.fuse) })
    }

    fn parameters() -> &'static [&'static str] {
        &["steps"]
    }

    fn parameter(&self, name: &str) -> Option<&dyn Parameter> {
        (name == "steps").then_some(&self.steps)
    }

    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter> {
        (name == "steps").then_some(&mut self.steps)
    }
}

fn envs(workers: usize, replacements: u32) -> Envs {
    let settings = ShardSettings { replacements, ..settings(AutoresetMode::NextStep) };
    let mut envs = Envs::new(&Recipe::<Fused>::new("").unwrap(), 4, workers, settings);
    envs.seed(0);
    envs
}

/// Makes every shard keep snapshots of its rows, which it drops at the beginning of the next step.
fn keep_snapshots(envs: &mut Envs) {
    for (rows, mailbox) in envs.pool.shards().iter().zip(&envs.mailboxes) {
        let values = vec![ParameterValue::Int(5); rows.len()];
        mailbox.post_request(Request::Set("steps".to_owned(), values));
    }
    envs.pool.begin(Call::Call, 0).unwrap();
    envs.pool.finish(Call::Call, None, &mut || false).unwrap();
}

#[test]
fn an_environment_that_cannot_be_dropped_fails_the_row_it_was_replaced_in() {
    for workers in [0, 2] {
        let mut envs = envs(workers, 3);
        envs.step(&[0, 7, 0, 0]).unwrap();
        let batch = envs.step(&[0, 9, 9, 0]).unwrap();
        let errors: Vec<_> = batch.faults.iter().map(|fault| fault.error.to_string()).collect();
        assert_eq!(errors, ["the environment of row 1 panicked: nine is no good"]);
        assert_eq!(batch.integers(0)[3], 2, "the others continue, row 2 with a new one");
        assert_eq!(batch.truncations(), [false, false, true, false]);
        let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == [1]));
        assert!(envs.seed(0).faults.is_empty());
        assert_eq!(envs.step(&[0; 4]).unwrap().integers(0), [1; 4]);
    }
}

#[test]
fn a_panic_between_rows_fails_every_row_of_its_shard() {
    for workers in [0, 2] {
        let mut envs = envs(workers, 0);
        envs.step(&[7, 0, 0, 0]).unwrap();
        keep_snapshots(&mut envs);
        let batch = envs.step(&[0; 4]).unwrap();
        let rows: Vec<_> = batch.faults.iter().map(|fault| fault.row).collect();
        let (expected, shown): (&[usize], _) =
            if workers == 0 { (&[0, 1, 2, 3], [0; 4]) } else { (&[0, 1], [0, 0, 6, 6]) };
        assert_eq!((rows.as_slice(), batch.integers(0).as_slice()), (expected, &shown[..]));
        let error = batch.faults[0].error.to_string();
        assert_eq!(error, "the environment of row 0 panicked: the fuse was lit");
        let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == expected));
        assert!(envs.seed(0).faults.is_empty());
        assert_eq!(envs.step(&[0; 4]).unwrap().integers(0), [1; 4]);
    }
}

#[test]
fn a_panic_between_rows_that_were_sent_fails_the_row_and_its_place_is_filled() {
    for workers in [0, 2] {
        let mut envs = envs(workers, 0);
        envs.step(&[7, 0, 0, 0]).unwrap();
        keep_snapshots(&mut envs);
        let rows = [0, 3];
        let mut sending = envs.pool.sending(Call::Step, &rows).unwrap();
        let zeros = |_, room: &mut [u8]| {
            room.fill(0);
            Ok(())
        };
        sending.fill_actions(0, ActionTag::Array(DType::I64), zeros).unwrap();
        sending.send(0).unwrap();
        let received = envs.pool.receive(None, &mut || false).unwrap();
        assert_eq!((&received.rows[..], &received.failed[..]), (&[0, 3][..], &[0][..]));
        drop(received);
        let fault = envs.mailboxes[0].take_fault(0).unwrap();
        assert_eq!(fault.error.to_string(), "the environment of row 0 panicked: the fuse was lit");
        let refused = envs.step(&[0; 4]).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NeedsReset { rows } if rows == [0]));
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
