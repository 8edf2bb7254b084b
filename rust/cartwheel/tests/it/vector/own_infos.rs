//! Infos that an author's own type writes: a mistake in one is an error where the info is read.

use std::cell::Cell;
use std::sync::Arc;

use cartwheel::{
    AutoresetMode, Buffer, Env, Error, Failure, InfoValue, InfoWriter, NoOptions, Rng, Seed, Space,
    Spaces, Transition, VectorEnv, VectorError,
};

/// Actions after which the info has no key, a key without a value, and values that are no
/// observation: too long, of two parts, of none.
const NO_KEY: i64 = 0;
const NO_VALUE: i64 = 1;
const TOO_LONG: i64 = 2;
const TWO_PARTS: i64 = 3;
const NO_PARTS: i64 = 4;

/// The info of an environment after an action.
#[derive(Debug, Clone)]
struct Told(i64);

impl InfoValue for Told {
    fn is_there(&self) -> bool {
        self.0 != NO_KEY
    }

    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self.0 {
            TOO_LONG => vec![1_i64, 2].write(writer),
            TWO_PARTS => {
                writer.tuple(2);
                writer.int(1);
                writer.int(2);
            }
            NO_PARTS => writer.tuple(0),
            _ => {}
        }
    }
}

cartwheel::info! {
    struct Report {
        /// The key that the last observation of an episode has.
        final_obs: Told,
    }
}

thread_local! {
    /// Environments that were made by this thread.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// An environment that shows its last action, and tells of it.
#[derive(Debug)]
struct Teller(i64);

impl Env for Teller {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Report;
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(5), action: Space::discrete(5) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        MADE.set(MADE.get() + 1);
        Ok(Self(NO_KEY))
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = NO_KEY;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.0 = action;
        Ok(Transition { reward: 0.0, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.0;
    }

    fn info(&self) -> Report {
        Report { final_obs: Told(self.0) }
    }
}

fn begun() -> VectorEnv<Teller> {
    let builder = VectorEnv::builder(2).autoreset(AutoresetMode::SameStep);
    let mut envs = builder.build().unwrap();
    envs.reset(Seed(0)).unwrap();
    envs
}

#[test]
fn an_own_info_that_is_no_observation_is_none_of_the_last_observations() {
    let mut envs = begun();
    for told in [TOO_LONG, TWO_PARTS, NO_PARTS] {
        let batch = envs.step(&[NO_KEY, told]).unwrap();
        assert_eq!(batch.infos().unwrap().row(1).keys().collect::<Vec<_>>(), ["final_obs"]);
        let error = batch.finals().unwrap_err();
        assert!(matches!(error, Error::MalformedInfo { .. }), "{told}: {error}");
    }
    assert!(envs.step(&[NO_KEY; 2]).unwrap().finals().unwrap().is_empty());
}

#[test]
fn after_a_malformed_info_a_recording_is_refused_and_another_one_is_complete() {
    let mut envs = begun();
    for wrong in 0..3 {
        let mut recording = envs.record(3).unwrap();
        for _ in 0..wrong {
            recording.step(&[NO_KEY; 2]).unwrap();
        }
        let error = recording.step(&[NO_KEY, NO_VALUE]).unwrap_err();
        assert!(matches!(error, VectorError::Env(Error::MalformedInfo { .. })), "{error}");
        for _ in wrong..3 {
            let refused = format!("the step after {wrong} gave an error: record again");
            assert_eq!(recording.step(&[NO_KEY; 2]).unwrap_err().to_string(), refused);
        }
        let missing = format!("{wrong} of 3 steps are recorded");
        assert_eq!(recording.finish().unwrap_err().to_string(), missing);
        let mut recording = envs.record(1).unwrap();
        recording.step(&[NO_KEY; 2]).unwrap();
        assert_eq!(recording.finish().unwrap().shape(), [1, 2]);
    }
}

#[test]
fn environments_are_made_only_after_the_memory_for_them() {
    let refused = VectorEnv::<Teller>::builder(2).batch_size(3).build();
    assert!(refused.unwrap_err().to_string().contains("batch_size is 3"));
    assert_eq!(MADE.get(), 1, "one checks the options");
    VectorEnv::<Teller>::builder(2).build().unwrap();
    assert_eq!(MADE.get(), 1 + 1 + 2);
}
