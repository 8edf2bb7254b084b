//! An environment whose reward is rounded as the caller's actions are.

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, Floats, FloatsRef, NoOptions, Rng, Space, Spaces, Transition,
};

/// The reward is the sum of the squares of three numbers, in the order of NumPy's `sum`; the
/// observation is the number of bytes that each of them had.
pub(crate) struct Effort {
    size: i64,
}

impl Env for Effort {
    type Options = NoOptions;
    type ResetOptions = NoOptions;
    type Action = Floats;
    type Observation = i64;
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let action = Space::float_box(&[-1.0; 3], &[1.0; 3]);
        Spaces { observation: Space::discrete(9), action }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { size: 0 })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.size = 0;
        Ok(())
    }

    fn step(&mut self, action: FloatsRef<'_>, _: &mut Rng) -> Result<Transition, Failure> {
        let reward = match action {
            FloatsRef::F32(action) => action.iter().fold(0.0, |sum, a| sum + a * a).into(),
            FloatsRef::F64(action) => action.iter().fold(0.0, |sum, a| sum + a * a),
        };
        self.size = if matches!(action, FloatsRef::F32(_)) { 4 } else { 8 };
        Ok(Transition { reward, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut i64) {
        *observation = self.size;
    }

    fn info(&self) {}

    cartwheel::state! { size }
}
