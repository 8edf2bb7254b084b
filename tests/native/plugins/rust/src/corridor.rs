//! A sound environment: walk to the end of a corridor.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, Frame, RenderMode, Rng, Space, Spaces, Transition};

/// The walker steps left (0) or right (1); at the right end the episode ends with the reward 1.
pub(crate) struct Corridor {
    length: i64,
    reward: f64,
    position: i64,
    steps: u32,
}

cartwheel::options! {
    pub(crate) struct Options {
        /// Cells of the corridor, at least 3.
        length: i64 = 5,
        /// Reward at the end.
        reward: f64 = 1.0,
    }
}

/// Not described, as a plugin may leave them.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ResetOptions {
    /// Where the walker begins; without it, at a random place of the first three.
    position: Option<i64>,
}

impl cartwheel::EnvOptions for ResetOptions {}

cartwheel::info! {
    pub(crate) struct Steps {
        steps: i64,
        place: Option<String>,
    }
}

cartwheel::view! {
    pub(crate) struct Seen, SeenMut, SeenRef {
        is_left: i64,
        position: [f32; 2],
    }
}

impl Env for Corridor {
    type Options = Options;
    type ResetOptions = ResetOptions;
    type Action = i64;
    type Observation = Seen;
    type Info = Steps;
    type Shared = ();

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray, RenderMode::Ansi];
    const RENDER_FPS: u32 = 12;

    cartwheel::parameters! { length: length, reward: reward, position: position }
    cartwheel::state! { length, reward, position, steps }

    fn spaces(_: &Options, (): &()) -> Spaces {
        let position = Space::float_box(&[0.0; 2], &[f64::INFINITY; 2]);
        let observation = Space::dict([("is_left", Space::discrete(2)), ("position", position)]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        if options.length < 3 {
            let length = options.length;
            return Err(Error::bad_options(format!("length must be at least 3, got {length}")));
        }
        Ok(Self { length: options.length, reward: options.reward, position: 0, steps: 0 })
    }

    fn reset(&mut self, rng: &mut Rng, options: &ResetOptions) -> Result<(), Failure> {
        self.position = options.position.unwrap_or_else(|| rng.integers(0..3));
        self.steps = 0;
        if self.position >= self.length {
            let (length, position) = (self.length, self.position);
            return Err(Failure::new(format!("{position} is beyond the end, {length}")));
        }
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.position = (self.position + 2 * action - 1).max(0);
        self.steps += 1;
        let terminated = self.position >= self.length;
        let reward = if terminated { self.reward } else { 0.0 };
        Ok(Transition { reward, terminated, truncated: false })
    }

    #[expect(clippy::cast_precision_loss, reason = "corridors are short")]
    fn observe(&self, seen: SeenMut<'_>) {
        *seen.is_left = i64::from(2 * self.position < self.length);
        *seen.position = [self.position as f32, self.length as f32];
    }

    fn info(&self) -> Steps {
        let place = (self.position == 0).then(|| "wall".to_owned());
        Steps { steps: self.steps.into(), place }
    }

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        let (length, position) = (usize::try_from(self.length)?, usize::try_from(self.position)?);
        match frame.mode() {
            RenderMode::Ansi => {
                let walk = (0..=length).map(|at| if at == position { 'x' } else { '.' });
                frame.text().extend(walk);
            }
            _ => frame.pixels(2, length + 1)[position] = [255, 0, 0],
        }
        Ok(())
    }
}
