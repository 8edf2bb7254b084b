//! Observations with texts, seen by authors and by programs in Rust.

use std::sync::Arc;

use cartwheel::testing::check_env;
use cartwheel::{
    Env, Error, Failure, NoOptions, Rng, Seed, Space, Spaces, Text, Transition, VectorEnv,
};

cartwheel::view! {
    /// A number, in digits and in words.
    struct Said, SaidMut, SaidRef {
        number: i64,
        words: Text,
    }
}

const WORDS: [&str; 3] = ["zero", "one", "twenty"];

/// Says a number; `SHORT` has less room than its longest word.
struct Speaker<const SHORT: bool>(usize);

impl<const SHORT: bool> Env for Speaker<SHORT> {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Said;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let words = Space::text(if SHORT { 4 } else { 6 }, "enortwyz");
        let observation = Space::dict([("number", Space::discrete(3)), ("words", words)]);
        Spaces { observation, action: Space::discrete(3) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self(0))
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = usize::try_from(rng.integers(0_u64..3))?;
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.0 = usize::try_from(action)? % 3;
        Ok(Transition { reward: 0.0, terminated: self.0 == 2, truncated: false })
    }

    fn observe(&self, mut said: SaidMut<'_>) {
        *said.number = i64::try_from(self.0).expect("a place in `WORDS`");
        said.words.set(WORDS[self.0]);
    }

    fn info(&self) {}
}

#[test]
fn the_test_kit_accepts_texts_and_refuses_those_that_do_not_fit() {
    check_env::<Speaker<false>>(NoOptions::default()).unwrap();
    let error = check_env::<Speaker<true>>(NoOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a text of 6 bytes in a space of 4: \"twenty\""), "{error}");
}

#[test]
fn a_program_in_rust_reads_texts_by_row_and_by_column() {
    let mut envs = VectorEnv::<Speaker<false>>::builder(3).build().unwrap();
    envs.reset(Seed(1)).unwrap();
    let batch = envs.step(&[0, 1, 2]).unwrap();
    let observations = batch.observations();
    assert_eq!(observations.row(2).words, "twenty");
    let (numbers, words) = observations.columns();
    assert_eq!((numbers, words.iter().collect::<Vec<_>>()), (&[0, 1, 2][..], WORDS.to_vec()));
    assert_eq!((words.len(), words.is_empty(), words.row(1)), (3, false, "one"));
}
