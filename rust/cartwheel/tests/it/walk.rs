//! An environment with every kind of leaf, info, parameter and fault.

use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, Flat, Frame, RenderMode, Rng, Space, Spaces, Transition,
};

/// Actions that fail, panic, or panic when the environment is dropped later.
pub(crate) const FAIL: i64 = 3;
pub(crate) const PANIC: i64 = 4;

cartwheel::view! {
    /// A walker's observation.
    pub(crate) struct Sight, SightMut, SightRef {
        /// Whether the last step went forward, and whether it was lucky.
        last: [bool; 2],
        /// Its position.
        position: i64,
        /// Where it was, newest first.
        trail: Flat<f32>,
    }
}

cartwheel::info! {
    /// A walker's info.
    pub(crate) struct Report {
        /// Absent after a reset.
        luck: Option<f64>,
        /// Steps of the episode.
        moves: i64,
        /// A dictionary.
        place: Place,
    }
}

cartwheel::info! {
    /// Its position.
    pub(crate) struct Place {
        /// Its trail.
        trail: Vec<f32>,
    }
}

/// A random walk.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    gravity: f64,
    goal: i64,
    position: i64,
    last: [bool; 2],
    trail: Vec<f32>,
    luck: Option<f64>,
    moves: i64,
}

cartwheel::options! {
    pub(crate) struct Options {
        /// The distance at which a walk ends.
        goal: i64 = 3,
        /// The length of the trail.
        trail: usize = 5,
    }
}

cartwheel::options! {
    pub(crate) struct Start {
        /// Where a walk begins.
        position: i64,
    }
}

impl Env for Walk {
    type Options = Options;
    type ResetOptions = Start;
    type Action = (i64, [f32; 2]);
    type Observation = Sight;
    type Info = Report;
    type Shared = ();

    fn spaces(options: &Options, (): &()) -> Spaces {
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let trail = Space::shaped_box(DType::F32, &[options.trail], low, high);
        let observation = Space::dict([
            ("last", Space::integer_box(DType::Bool, &[2], 0, 1)),
            ("position", Space::Discrete { n: 201, start: -100 }),
            ("trail", trail),
        ]);
        let push = Space::float_box(&[-1.0, -1.0], &[1.0, 1.0]);
        Spaces { observation, action: Space::Tuple(vec![Space::discrete(5), push]) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        if options.goal < 1 {
            return Err(Error::bad_options(format!(
                "`goal` is {}, must be positive",
                options.goal
            )));
        }
        Ok(Self {
            gravity: 9.81,
            goal: options.goal,
            position: 0,
            last: [false; 2],
            trail: vec![0.0; options.trail],
            luck: None,
            moves: 0,
        })
    }

    fn reset(&mut self, rng: &mut Rng, options: &Start) -> Result<(), Failure> {
        if options.position < 0 {
            return Err(Failure::new("walks start at 0 or above"));
        }
        (self.position, self.last, self.luck, self.moves) = (options.position, [false; 2], None, 0);
        self.trail.fill(rng.random_f32());
        Ok(())
    }

    fn step(
        &mut self,
        (direction, push): (i64, &[f32; 2]),
        rng: &mut Rng,
    ) -> Result<Transition, Failure> {
        if direction == FAIL {
            return Err(Failure::new("it stumbled"));
        }
        assert!(direction != PANIC, "it fell");
        let luck = rng.random();
        self.position += direction - 1;
        self.last = [direction == 2, luck > 0.5];
        self.trail.rotate_right(1);
        if let Some(newest) = self.trail.first_mut() {
            *newest = push[0] * 10.0 + push[1];
        }
        (self.luck, self.moves) = (Some(luck), self.moves + 1);
        Ok(Transition {
            reward: luck * self.gravity,
            terminated: self.position.abs() >= self.goal,
            truncated: luck < 0.05,
        })
    }

    fn observe(&self, sight: SightMut<'_>) {
        (*sight.last, *sight.position) = (self.last, self.position);
        sight.trail.copy_from_slice(&self.trail);
    }

    fn info(&self) -> Report {
        Report { luck: self.luck, moves: self.moves, place: Place { trail: self.trail.clone() } }
    }

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray, RenderMode::Ansi];

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        match frame.mode() {
            RenderMode::Ansi => frame.text().push_str(&self.position.to_string()),
            _ => frame.pixels(2, 3)[0] = [self.moves.to_le_bytes()[0], 1, 2],
        }
        Ok(())
    }

    cartwheel::parameters! { gravity: gravity, goal: goal }
    cartwheel::state! { gravity, goal, position, last, trail, luck, moves }
}
