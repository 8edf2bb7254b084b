//! The autoreset machine keeps Gymnasium's transcripts, mode by mode.

use cartwheel_engine::autoreset::{Autoreset, AutoresetMode, OnDone, Refusal, Rows};
use cartwheel_engine::{PhaseTag, Transition};

/// An environment whose episode ends at step `length`; it records the calls that it gets.
struct Counter {
    length: u32,
    now: u32,
    fails_at: Option<u32>,
    /// Resets that fail from now on.
    failing_resets: u32,
    /// Whether a new environment replaces a failed one.
    replaceable: bool,
    log: Vec<String>,
}

impl Counter {
    fn new(length: u32) -> Self {
        Self {
            length,
            now: 0,
            fails_at: None,
            failing_resets: 0,
            replaceable: false,
            log: Vec::new(),
        }
    }

    fn taken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

impl Rows for Counter {
    type Error = &'static str;

    fn step(&mut self, _row: usize) -> Result<Transition, Self::Error> {
        self.now += 1;
        if self.fails_at == Some(self.now) {
            return Err("boom");
        }
        let terminated = self.now == self.length;
        Ok(Transition { reward: f64::from(self.now), terminated, truncated: false })
    }

    fn reset(&mut self, _row: usize) -> Result<(), Self::Error> {
        if self.failing_resets > 0 {
            self.failing_resets -= 1;
            return Err("no reset");
        }
        self.now = 0;
        self.log.push("reset".to_owned());
        Ok(())
    }

    fn keep_final(&mut self, _row: usize) -> Result<(), Self::Error> {
        self.log.push(format!("final {}", self.now));
        Ok(())
    }

    fn publish(&mut self, _row: usize) -> Result<(), Self::Error> {
        self.log.push(format!("obs {}", self.now));
        Ok(())
    }

    fn repeat(&mut self, _row: usize) -> Result<(), Self::Error> {
        self.log.push(format!("again {}", self.now));
        Ok(())
    }

    fn replace(&mut self, _row: usize, failure: Self::Error) -> Result<(), Self::Error> {
        if !self.replaceable {
            return Err(failure);
        }
        self.fails_at = None;
        self.log.push(format!("replace: {failure}"));
        Ok(())
    }
}

fn step(machine: &mut Autoreset, env: &mut Counter) -> (f64, bool, Vec<String>) {
    let transition = machine.step(env, 0).expect("the environment does not fail");
    (transition.reward, transition.is_over(), env.taken())
}

fn said(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn next_step_ignores_the_action_after_the_last_step_and_resets() {
    let mut machine = Autoreset::new(AutoresetMode::NextStep, OnDone::Raise, 1);
    let mut env = Counter::new(2);
    assert_eq!(step(&mut machine, &mut env), (1.0, false, said(&["obs 1"])));
    assert_eq!(step(&mut machine, &mut env), (2.0, true, said(&["obs 2"])));
    assert_eq!(machine.phase(0), PhaseTag::Over);
    assert_eq!(step(&mut machine, &mut env), (0.0, false, said(&["reset", "obs 0"])));
    assert_eq!(step(&mut machine, &mut env), (1.0, false, said(&["obs 1"])));
}

#[test]
fn same_step_keeps_the_final_frame_before_it_resets() {
    let mut machine = Autoreset::new(AutoresetMode::SameStep, OnDone::Raise, 1);
    let mut env = Counter::new(2);
    step(&mut machine, &mut env);
    assert_eq!(step(&mut machine, &mut env), (2.0, true, said(&["final 2", "reset", "obs 0"])));
    assert_eq!(machine.phase(0), PhaseTag::Running);
    assert_eq!(step(&mut machine, &mut env), (1.0, false, said(&["obs 1"])));
}

#[test]
fn episodes_of_length_one_are_over_at_every_real_step() {
    let mut next = Autoreset::new(AutoresetMode::NextStep, OnDone::Raise, 1);
    let mut env = Counter::new(1);
    for _ in 0..3 {
        assert_eq!(step(&mut next, &mut env), (1.0, true, said(&["obs 1"])));
        assert_eq!(step(&mut next, &mut env), (0.0, false, said(&["reset", "obs 0"])));
    }
    let mut same = Autoreset::new(AutoresetMode::SameStep, OnDone::Raise, 1);
    let mut env = Counter::new(1);
    for _ in 0..3 {
        assert_eq!(step(&mut same, &mut env), (1.0, true, said(&["final 1", "reset", "obs 0"])));
    }
}

#[test]
fn disabled_refuses_a_row_that_is_over_and_changes_nothing() {
    let mut machine = Autoreset::new(AutoresetMode::Disabled, OnDone::Raise, 1);
    let mut env = Counter::new(1);
    step(&mut machine, &mut env);
    for _ in 0..2 {
        assert_eq!(machine.step(&mut env, 0), Err(Refusal::Over));
        assert_eq!((env.now, env.taken()), (1, said(&[])));
    }
    machine.reset(&mut env, 0, |env| env.reset(0)).expect("a reset succeeds");
    assert_eq!(env.taken(), said(&["reset", "obs 0"]));
    assert_eq!(step(&mut machine, &mut env), (1.0, true, said(&["obs 1"])));
}

#[test]
fn a_frozen_row_repeats_its_frame_and_flags_until_it_is_reset() {
    let mut machine = Autoreset::new(AutoresetMode::Disabled, OnDone::Freeze, 1);
    let mut env = Counter::new(2);
    step(&mut machine, &mut env);
    step(&mut machine, &mut env);
    for _ in 0..3 {
        assert_eq!(step(&mut machine, &mut env), (0.0, true, said(&["again 2"])));
    }
    machine.reset(&mut env, 0, |env| env.reset(0)).expect("a reset succeeds");
    env.taken();
    assert_eq!(step(&mut machine, &mut env), (1.0, false, said(&["obs 1"])));
}

#[test]
fn an_explicit_reset_clears_a_pending_autoreset() {
    let mut machine = Autoreset::new(AutoresetMode::NextStep, OnDone::Raise, 1);
    let mut env = Counter::new(1);
    step(&mut machine, &mut env);
    machine.reset(&mut env, 0, |env| env.reset(0)).expect("a reset succeeds");
    env.taken();
    assert_eq!(step(&mut machine, &mut env), (1.0, true, said(&["obs 1"])));
}

#[test]
fn a_failed_row_is_refused_until_a_reset_succeeds() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let mut machine = Autoreset::new(mode, OnDone::Raise, 1);
        let mut env = Counter { fails_at: Some(1), ..Counter::new(9) };
        assert_eq!(machine.step(&mut env, 0), Err(Refusal::Environment("boom")));
        assert_eq!(machine.phase(0), PhaseTag::Failed);
        assert_eq!(machine.step(&mut env, 0), Err(Refusal::Failed));
        assert_eq!(machine.reset(&mut env, 0, |_| Err("again")), Err("again"));
        assert_eq!(machine.step(&mut env, 0), Err(Refusal::Failed));
        machine.reset(&mut env, 0, |env| env.reset(0)).expect("a reset succeeds");
        env.fails_at = None;
        assert!(machine.step(&mut env, 0).is_ok());
    }
}

#[test]
fn an_unstarted_row_is_refused_until_a_reset_succeeds() {
    for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let mut machine = Autoreset::unstarted(mode, OnDone::Freeze, 1);
        let mut env = Counter::new(9);
        assert_eq!(machine.step(&mut env, 0), Err(Refusal::Unstarted));
        assert_eq!((machine.phase(0), env.taken()), (PhaseTag::Unstarted, said(&[])));
        machine.reset(&mut env, 0, |env| env.reset(0)).expect("a reset succeeds");
        assert!(machine.step(&mut env, 0).is_ok());
    }
}

/// An environment that fails at its second step, unless it is replaced.
fn replaceable(length: u32) -> Counter {
    Counter { fails_at: Some(2), replaceable: true, ..Counter::new(length) }
}

#[test]
fn a_row_whose_environment_is_replaced_is_truncated_in_every_mode() {
    let cases = [
        (AutoresetMode::NextStep, PhaseTag::Over, vec!["obs 2"]),
        (AutoresetMode::SameStep, PhaseTag::Running, vec!["final 2", "reset", "obs 0"]),
        (AutoresetMode::Disabled, PhaseTag::Over, vec!["obs 2"]),
    ];
    for (mode, phase, shown) in cases {
        let mut machine = Autoreset::new(mode, OnDone::Raise, 1);
        let mut env = replaceable(9);
        step(&mut machine, &mut env);
        assert_eq!(machine.step(&mut env, 0), Ok(Transition::CUT));
        assert_eq!(machine.phase(0), phase);
        let expected: Vec<_> = std::iter::once("replace: boom").chain(shown).collect();
        assert_eq!(env.taken(), said(&expected));
    }
}

#[test]
fn an_autoreset_that_fails_is_tried_once_more_and_the_end_of_the_episode_is_kept() {
    let mut same = Autoreset::new(AutoresetMode::SameStep, OnDone::Raise, 1);
    let mut env = Counter { replaceable: true, failing_resets: 1, ..Counter::new(1) };
    let expected = said(&["final 1", "replace: no reset", "reset", "obs 0"]);
    assert_eq!(step(&mut same, &mut env), (1.0, true, expected));
    env.failing_resets = 2;
    assert_eq!(same.step(&mut env, 0), Err(Refusal::Environment("no reset")));
    assert_eq!(same.phase(0), PhaseTag::Failed);

    let mut next = Autoreset::new(AutoresetMode::NextStep, OnDone::Raise, 1);
    let mut env = Counter { replaceable: true, ..Counter::new(1) };
    step(&mut next, &mut env);
    env.failing_resets = 1;
    let expected = said(&["replace: no reset", "reset", "obs 0"]);
    assert_eq!(step(&mut next, &mut env), (0.0, false, expected));
}

#[test]
fn an_explicit_reset_that_fails_is_tried_once_more() {
    let mut machine = Autoreset::new(AutoresetMode::Disabled, OnDone::Raise, 1);
    let mut env = Counter { replaceable: true, failing_resets: 1, ..Counter::new(1) };
    machine.reset(&mut env, 0, |env| env.reset(0)).expect("the second reset succeeds");
    assert_eq!(env.taken(), said(&["replace: no reset", "reset", "obs 0"]));
    env.failing_resets = 2;
    assert_eq!(machine.reset(&mut env, 0, |env| env.reset(0)), Err("no reset"));
}

#[test]
fn rows_of_a_restarted_worker_resume_in_their_phase() {
    let over = [true, false];
    let next = Autoreset::resumed(AutoresetMode::NextStep, OnDone::Raise, &over);
    assert_eq!([next.phase(0), next.phase(1)], [PhaseTag::Over, PhaseTag::Running]);
    for mode in [AutoresetMode::SameStep, AutoresetMode::Disabled] {
        let machine = Autoreset::resumed(mode, OnDone::Raise, &over);
        assert_eq!([machine.phase(0), machine.phase(1)], [PhaseTag::Running; 2]);
    }
}
