//! Steps that repeat their action, terminations that are ignored, rows that begin staggered.

use std::num::NonZero;
use std::sync::Arc;

use cartwheel::{Env, Failure, NoOptions, Rng, Space, Spaces, Transition};
use cartwheel_engine::autoreset::{AutoresetMode, OnDone, Rules};
use cartwheel_engine::native::{RowReset, ShardSettings};
use cartwheel_engine::plugin::EnvKind;

use super::{MODES, PLUGIN, infos, key};
use crate::support::{Batch, Envs, kind, settings};

/// Counts its steps, which all have an info and the reward 1, 10, 100, …. The action is the step at
/// which the episode ends; from 10 on, tens are the step that fails; from 100 on, hundreds the step
/// that panics.
#[derive(Debug, Clone)]
pub(crate) struct Brittle {
    steps: i64,
    was_reset: bool,
}

cartwheel::info! {
    /// The number of steps.
    pub(crate) struct Steps {
        steps: i64,
    }
}

impl Env for Brittle {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Steps;
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(1000), action: Space::discrete(1000) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, cartwheel::Error> {
        Ok(Self { steps: 0, was_reset: false })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        *self = Self { steps: 0, was_reset: true };
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.steps += 1;
        assert!(self.was_reset, "stepped before it was reset");
        assert!(action / 100 != self.steps, "step {} is refused", self.steps);
        if action / 10 % 10 == self.steps {
            return Err(Failure::new(format!("step {} is too much", self.steps)));
        }
        let power = u32::try_from(self.steps - 1).expect("few steps");
        let terminated = action % 10 == self.steps;
        Ok(Transition { reward: f64::from(10_u32.pow(power)), terminated, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.steps;
    }

    fn info(&self) -> Steps {
        Steps { steps: self.steps }
    }

    cartwheel::state! { steps, was_reset }
}

fn brittle() -> Arc<EnvKind> {
    kind(&PLUGIN, "test/Brittle-v0", "").expect("it is in the table")
}

fn repeating(mode: AutoresetMode, times: u32, limit: u32) -> ShardSettings {
    let action_repeat = NonZero::new(times).expect("not zero");
    let rules = Rules { action_repeat, ..Rules::limited(limit) };
    ShardSettings { rules, ..settings(mode) }
}

/// The rows that have an info of this name.
fn rows_with(name: &str, batch: &Batch) -> Vec<usize> {
    let found = infos(&batch.infos).into_iter().filter(|(_, key, _)| key == name);
    found.map(|(row, ..)| row).collect()
}

#[test]
fn rows_that_end_early_are_left_alone_and_keep_their_last_info() {
    for workers in [0, 3] {
        for mode in [AutoresetMode::NextStep, AutoresetMode::Disabled] {
            let mut envs = Envs::new(&brittle(), 5, workers, repeating(mode, 3, 0));
            envs.seed(0);
            let batch = envs.step(&[0, 2, 1, 3, 0]).expect("a step");
            assert_eq!(batch.integers(0), [3, 2, 1, 3, 3]);
            assert_eq!(batch.rewards(), [111.0, 11.0, 1.0, 111.0, 111.0]);
            assert_eq!(batch.terminations(), [false, true, true, true, false]);
            let last: Vec<_> = [3, 2, 1, 3, 3].into_iter().enumerate().collect();
            let keys: Vec<_> =
                last.into_iter().map(|(row, last)| key(row, "steps", last)).collect();
            assert_eq!(infos(&batch.infos), keys);
            let batch = envs.step(&[0; 5]).expect("a step");
            let resets = mode == AutoresetMode::NextStep;
            let shown = if resets { [6, 0, 0, 0, 6] } else { [6, 2, 1, 3, 6] };
            assert_eq!(batch.integers(0), shown, "one reset, or none");
            assert_eq!(batch.rewards(), [111_000.0, 0.0, 0.0, 0.0, 111_000.0]);
            let told = if resets { vec![0, 1, 2, 3, 4] } else { vec![0, 4] };
            assert_eq!(rows_with("steps", &batch), told);
        }
    }
}

#[test]
fn the_reset_of_the_same_step_follows_the_last_repetition() {
    let mut envs = Envs::new(&brittle(), 3, 0, repeating(AutoresetMode::SameStep, 4, 3));
    envs.seed(0);
    let batch = envs.step(&[0, 2, 9]).expect("a step");
    assert_eq!(batch.integers(0), [0, 0, 0]);
    assert_eq!(batch.rewards(), [111.0, 11.0, 111.0], "the limit counts repetitions");
    assert_eq!(batch.terminations(), [false, true, false]);
    assert_eq!(batch.truncations(), [true, false, true]);
    let keys = |(row, last)| {
        [key(row, "final_obs", last), key(row, "final_info", 0), key(row, "steps", 0)]
    };
    assert_eq!(infos(&batch.infos), [(0, 3), (1, 2), (2, 3)].map(keys).concat());
}

#[test]
fn a_failure_in_the_middle_is_that_of_a_failed_step() {
    for (action, text) in [(20, "step 2 is too much"), (200, "step 2 is refused")] {
        for mode in MODES {
            let mut envs = Envs::new(&brittle(), 3, 0, repeating(mode, 3, 0));
            envs.seed(0);
            let batch = envs.step(&[1, action, 0]).expect("a step");
            let [fault] = batch.faults.as_slice() else { panic!("one fault") };
            assert!(fault.row == 1 && fault.error.to_string().contains(text), "{fault:?}");
            assert_eq!(batch.rewards(), [1.0, 0.0, 111.0]);
            assert_eq!(batch.terminations(), [true, false, false]);
            let mut how = vec![RowReset::Leave; 3];
            how[1] = RowReset::Continue;
            envs.reset(how, None);
            assert_eq!(envs.step(&[0; 3]).expect("a step").rewards()[1..2], [111.0]);
        }
    }
}

#[test]
fn an_environment_that_fails_in_the_middle_is_replaced_and_its_episode_cut() {
    for mode in MODES {
        let replaced = ShardSettings { replacements: 9, ..repeating(mode, 4, 0) };
        let mut envs = Envs::new(&brittle(), 4, 0, replaced);
        envs.seed(0);
        // The rows fail in another order than that of their numbers.
        let batch = envs.step(&[30, 1, 20, 400]).expect("a step");
        assert!(batch.faults.is_empty(), "{:?}", batch.faults);
        assert_eq!(batch.integers(0), [0, i64::from(mode != AutoresetMode::SameStep), 0, 0]);
        assert_eq!(batch.rewards(), [0.0, 1.0, 0.0, 0.0], "{mode:?}");
        assert_eq!(batch.truncations(), [true, false, true, true]);
        assert_eq!(rows_with("env_error", &batch), [0, 2, 3], "one error each");
        let text = String::from_utf8_lossy(&batch.infos);
        let places: Vec<_> =
            [3, 2, 4].iter().map(|step| text.find(&format!("step {step} is"))).collect();
        assert!(places.is_sorted() && places[0].is_some(), "in the order of rows: {places:?}");
    }
}

#[test]
fn rows_that_are_sent_repeat_their_action_as_in_a_step() {
    use cartwheel_engine::Call;
    use cartwheel_engine::space::{ActionTag, DType};

    let mut together = Envs::new(&brittle(), 4, 0, repeating(AutoresetMode::SameStep, 3, 5));
    let mut apart = Envs::new(&brittle(), 4, 2, repeating(AutoresetMode::SameStep, 3, 5));
    together.seed(0);
    apart.seed(0);
    for step in 0..6 {
        let actions: Vec<i64> = (0..4).map(|row| (row + step) % 4).collect();
        let batch = together.step(&actions).expect("a step");
        let rows = [3, 1, 0, 2];
        let mut sending = apart.pool.sending(Call::Step, Some(&rows)).expect("idle rows");
        sending
            .fill_actions(0, ActionTag::Array(DType::I64), |sent, room| {
                let own: Vec<_> = rows[sent].iter().map(|&row| actions[row]).collect();
                room.copy_from_slice(&crate::support::bytes_of(&own));
                Ok(())
            })
            .expect("actions");
        sending.send(0).expect("room");
        let received = apart
            .pool
            .receive(Some(std::time::Duration::from_secs(30)), &mut || false)
            .expect("a batch");
        let lease = received.lease.as_ref().unwrap();
        let layout = lease.layout();
        for (place, row) in received.rows.iter().enumerate() {
            let mut bytes = [0; 8];
            lease.read(layout.rewards_offset() + 8 * place, &mut bytes);
            assert_eq!(bytes, batch.rewards()[row].to_ne_bytes());
            lease.read(layout.leaf_offset(0) + 8 * place, &mut bytes);
            assert_eq!(i64::from_ne_bytes(bytes), batch.integers(0)[row]);
        }
    }
}

#[test]
fn terminations_are_ignored_until_the_limit() {
    let rules = Rules { ignore_terminations: true, ..Rules::limited(3) };
    for mode in MODES {
        let mut envs = Envs::new(&brittle(), 2, 0, ShardSettings { rules, ..settings(mode) });
        envs.seed(0);
        for steps in 1..=3 {
            let batch = envs.step(&[1, 2]).expect("a step");
            assert_eq!(batch.terminations(), [false; 2]);
            assert_eq!(batch.truncations(), [steps == 3; 2]);
        }
    }
}

#[test]
fn only_full_resets_stagger_and_the_seed_alone_decides() {
    let rules = Rules { staggered_reset: true, ignore_terminations: true, ..Rules::limited(50) };
    let on_done = OnDone::Freeze;
    let settings = ShardSettings { rules, on_done, ..settings(AutoresetMode::Disabled) };
    let lengths = |workers: usize, full: bool, first: u128| {
        let mut envs =
            Envs::new(&kind(&PLUGIN, "test/Sum-v4", "").expect("known"), 40, workers, settings);
        let how = (0..40).map(|row| RowReset::Seed(first + row)).collect();
        let flags = if full { cartwheel_engine::FULL_RESET } else { 0 };
        envs.reset_with_flags(how, None, flags);
        let mut lengths = vec![0; 40];
        for step in 1..=50 {
            let batch = envs.step(&[0; 40]).expect("a step");
            for (length, truncated) in lengths.iter_mut().zip(batch.truncations()) {
                *length = if truncated && *length == 0 { step } else { *length };
            }
        }
        lengths
    };
    assert_eq!(lengths(0, false, 3), [50; 40]);
    let staggered = lengths(0, true, 3);
    assert_eq!(staggered, lengths(3, true, 3));
    assert_eq!(staggered[1..], lengths(0, true, 4)[..39], "a row's seed decides, not its number");
    let mut different = staggered.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 20 && different[0] >= 1 && different[different.len() - 1] <= 50);
}
