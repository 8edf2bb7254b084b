//! Errors of requests name the row, whichever thread has it.

use std::fmt::Debug;
use std::sync::Arc;

use cartwheel::vector::{Builder, Finals, Recording, Rollout};
use cartwheel::{
    Batch, Env, Error, Failure, Frame, NoOptions, Parameter, RenderMode, Rng, Seed, Space, Spaces,
    Transition, VectorEnv,
};

/// An environment without `Debug`. After the action 1 it neither tells its parameter nor draws.
struct Mute(i64);

impl Env for Mute {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(2), action: Space::discrete(2) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self(0))
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = 0;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.0 = action;
        Ok(Transition { reward: 0.0, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.0;
    }

    fn info(&self) {}

    const RENDER: &'static [RenderMode] = &[RenderMode::Ansi];

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        if self.0 == 1 {
            return Err(Failure::new("it has no pen"));
        }
        frame.text().push_str("it");
        Ok(())
    }

    fn parameters() -> &'static [&'static str] {
        &["mood"]
    }

    fn parameter(&self, _: &str) -> Option<&dyn Parameter> {
        if self.0 == 1 { None } else { Some(&self.0) }
    }

    fn parameter_mut(&mut self, _: &str) -> Option<&mut dyn Parameter> {
        Some(&mut self.0)
    }
}

fn begun(threads: usize) -> VectorEnv<Mute> {
    let mut envs = VectorEnv::builder(7).threads(threads).build().unwrap();
    envs.reset(Seed(0)).unwrap();
    envs.step(&[0, 0, 0, 0, 0, 1, 1]).unwrap();
    envs
}

#[test]
fn a_parameter_that_is_not_told_names_the_first_such_row() {
    for threads in [1, 3] {
        let mut envs = begun(threads);
        let error = envs.parameter::<i64>("mood").unwrap_err().to_string();
        assert!(error.starts_with("the environment of row 5 failed: "), "{error}");
        assert!(error.contains("names \"mood\", which is not there"), "{error}");
        envs.step(&[0; 7]).unwrap();
        assert_eq!(envs.parameter::<i64>("mood").unwrap(), [0; 7]);
    }
}

#[test]
fn a_row_that_does_not_draw_is_named() {
    for threads in [1, 3] {
        let mut envs = begun(threads);
        let error = envs.render(6, RenderMode::Ansi).unwrap_err().to_string();
        assert_eq!(error, "the environment of row 6 failed: it has no pen");
    }
}

fn is_shown<T: Debug>() {}

fn are_shown<E: Env>() {
    is_shown::<Batch<E>>();
    is_shown::<Builder<E>>();
    is_shown::<Finals<'_, E>>();
    is_shown::<Recording<'_, E>>();
    is_shown::<Rollout<E>>();
    is_shown::<VectorEnv<E>>();
}

#[test]
fn what_has_results_is_shown_although_its_environment_is_not() {
    are_shown::<Mute>();
    let batch = format!("{:?}", begun(1).step(&[0; 7]).unwrap());
    assert!(batch.contains("Mute") && batch.contains("[0, 1, 2, 3, 4, 5, 6]"), "{batch}");
}
