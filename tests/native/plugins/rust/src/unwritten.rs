//! An environment that leaves a part of its observations unwritten.

use std::sync::Arc;

use cartwheel::{DType, Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};

cartwheel::options! {
    pub(crate) struct Options {
        /// The part that is not written: "nothing", "leaf", "element", "at step 9" or "after a
        /// reset".
        leaves: String = "nothing".to_owned(),
    }
}

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        pixels: [[u16; 2]; 2],
        step: i64,
    }
}

pub(crate) struct Unwritten {
    leaves: String,
    step: i64,
}

impl Env for Unwritten {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Seen;
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let pixels = Space::integer_box(DType::U16, &[2, 2], 0, u16::MAX.into());
        let step = Space::integer_box(DType::I64, &[], i64::MIN.into(), i64::MAX.into());
        let observation = Space::dict([("pixels", pixels), ("step", step)]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { leaves: options.leaves.clone(), step: 0 })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.step = 0;
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.step += 1;
        Ok(Transition { reward: 0.0, terminated: self.step == 20, truncated: false })
    }

    fn observe(&self, seen: SeenMut<'_>) {
        *seen.step = self.step;
        if self.leaves == "leaf" {
            return;
        }
        seen.pixels[0] = [1, 2];
        seen.pixels[1][1] = 4;
        match (self.leaves.as_str(), self.step) {
            ("element", _) | ("at step 9", 9) | ("after a reset", 0) => {}
            _ => seen.pixels[1][0] = 3,
        }
    }

    fn info(&self) {}
}
