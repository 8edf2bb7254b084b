//! An environment that fails or panics where its options or actions ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cartwheel::{Env, Error, Failure, Frame, RenderMode, Rng, Shared, Space, Spaces, Transition};

/// A fault.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    #[default]
    None,
    Fail,
    Panic,
}

impl Fault {
    fn happen(self, place: &str) -> Result<(), Failure> {
        match self {
            Self::None => Ok(()),
            Self::Fail => Err(Failure::new(format!("told to fail in {place}"))),
            Self::Panic => panic!("told to panic in {place}"),
        }
    }
}

/// The actions 1 and 2 fail and panic; 0 and 3 go on.
const ACTIONS: [Fault; 4] = [Fault::None, Fault::Fail, Fault::Panic, Fault::None];

cartwheel::options! {
    pub(crate) struct Options {
        prepare: Fault,
        new: Fault,
        /// Number of environments that are made before `new` fails.
        new_after: u32,
        observe: Fault,
        render: Fault,
        drop: Fault,
    }
}

cartwheel::options! {
    pub(crate) struct ResetOptions {
        reset: Fault,
    }
}

/// Counts the environments that were made.
pub(crate) struct Made(AtomicU32);

impl Shared<Options> for Made {
    fn prepare(options: &Options) -> Result<Self, Error> {
        options.prepare.happen("prepare").map_err(Error::bad_options)?;
        Ok(Self(AtomicU32::new(0)))
    }
}

pub(crate) struct Faulty {
    steps: f32,
    observe: Fault,
    render: Fault,
    drop: Fault,
}

impl Env for Faulty {
    type Options = Options;
    type ResetOptions = ResetOptions;
    type Action = i64;
    type Observation = [f32; 1];
    type Info = ();
    type Shared = Made;

    const RENDER: &'static [RenderMode] = &[RenderMode::Ansi];

    cartwheel::state! { steps }

    fn spaces(_: &Options, _: &Made) -> Spaces {
        let observation = Space::float_box(&[0.0], &[f64::INFINITY]);
        Spaces { observation, action: Space::discrete(4) }
    }

    fn new(options: &Options, made: &Arc<Made>) -> Result<Self, Error> {
        // Only a count: nothing else is published with it.
        if made.0.fetch_add(1, Ordering::Relaxed) >= options.new_after {
            options.new.happen("new").map_err(Error::bad_options)?;
        }
        let Options { observe, render, drop, .. } = *options;
        Ok(Self { steps: 0.0, observe, render, drop })
    }

    fn reset(&mut self, _: &mut Rng, options: &ResetOptions) -> Result<(), Failure> {
        self.steps = 0.0;
        options.reset.happen("reset")
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.steps += 1.0;
        usize::try_from(action).map(|action| ACTIONS[action])?.happen("step")?;
        Ok(Transition { reward: 1.0, terminated: false, truncated: false })
    }

    fn observe(&self, observation: &mut [f32; 1]) {
        if self.steps >= 2.0 {
            let _ = self.observe.happen("observe");
        }
        observation[0] = self.steps;
    }

    fn info(&self) {}

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        frame.text().push('.');
        self.render.happen("render")
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        let _ = self.drop.happen("drop");
    }
}
