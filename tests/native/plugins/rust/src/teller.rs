//! An environment whose observations have texts.

use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, NoOptions, Rng, Space, Spaces, Text, TextSpace, Transition,
};

cartwheel::view! {
    /// An observation: a dictionary with these keys.
    pub(crate) struct Told, ToldMut, ToldRef {
        /// The number of letters.
        count: i64,
        /// The letters of the episode.
        letters: Text,
        /// The last letter, or nothing.
        newest: Text,
        /// The part of the letters that there can be: a `Box` without dimensions.
        share: f32,
    }
}

/// Letters of one, two and three bytes.
const LETTERS: [char; 4] = ['a', 'b', 'é', '€'];

/// The most letters of an episode.
const MOST: u8 = 6;

/// Tells letters: action 1 adds one, and the episode ends when there are as many as it began to have.
pub(crate) struct Teller {
    letters: String,
    goal: u8,
    /// Any number of 64 bits, without an effect.
    salt: u64,
}

impl Teller {
    fn count(&self) -> u8 {
        u8::try_from(self.letters.chars().count()).unwrap_or(MOST)
    }
}

impl Env for Teller {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Told;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let charset: String = LETTERS.iter().collect();
        let newest = TextSpace { min_length: 0, max_length: 1, charset: charset.clone() };
        let observation = Space::dict([
            ("count", Space::discrete(i64::from(MOST) + 1)),
            ("letters", Space::text(MOST.into(), &charset)),
            ("newest", Space::Text(newest)),
            ("share", Space::shaped_box(DType::F32, &[], 0.0, 1.0)),
        ]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { letters: String::new(), goal: 1, salt: u64::MAX })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.letters.clear();
        self.goal = u8::try_from(rng.integers(1..=i64::from(MOST)))?;
        Ok(())
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        if action == 1 && self.count() < MOST {
            self.letters.push(LETTERS[usize::try_from(rng.integers(0_i64..4))?]);
        }
        let terminated = self.count() >= self.goal;
        Ok(Transition { reward: f64::from(self.count()), terminated, truncated: false })
    }

    fn observe(&self, mut told: ToldMut<'_>) {
        *told.count = i64::from(self.count());
        told.letters.set(&self.letters);
        *told.share = f32::from(self.count()) / f32::from(MOST);
        told.newest.set(self.letters.chars().last().map(String::from).as_deref().unwrap_or(""));
    }

    fn info(&self) {}

    cartwheel::state! { letters, goal, salt }
    cartwheel::parameters! { salt: salt }
}
