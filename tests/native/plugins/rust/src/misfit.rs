//! An environment whose spaces its types do not fit.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};

pub(crate) struct Misfit;

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        camera: [u8; 4],
        speed: [f32; 1],
    }
}

impl Env for Misfit {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = Seen;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let number = Space::float_box(&[0.0], &[1.0]);
        let observation = Space::dict([("camera", number.clone()), ("velocity", number)]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition { reward: 0.0, terminated: false, truncated: false })
    }

    fn observe(&self, _: SeenMut<'_>) {}

    fn info(&self) {}
}
