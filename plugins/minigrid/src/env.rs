//! One environment: a level in a world, as cartwheel steps it.

use std::sync::Arc;

use cartwheel::{
    DType, Env, EnvOptions, Error, Failure, Flat, Frame, NoOptions, RenderMode, Rng, Space, Spaces,
    State, Text, Transition,
};

use crate::picture;
use crate::view::{MOST_SEEN, View};
use crate::world::{Action, Outcome, World};

cartwheel::view! {
    /// An observation: a dictionary with these keys.
    pub struct Sight, SightMut, SightRef {
        /// Where the agent looks: 0 to 3, right, down, left, up.
        direction: i64,
        /// Its view: object, color and state of each cell, `[column, row, 3]`.
        image: Flat<u8>,
        /// The task.
        mission: Text,
    }
}

/// The letters of missions.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz ,";

/// Keywords that every level has.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    pub max_steps: Option<i64>,
    pub see_through_walls: Option<bool>,
    pub agent_view_size: usize,
    pub highlight: bool,
    pub tile_size: usize,
    pub agent_pov: bool,
}

/// The keywords of a level.
pub trait LevelOptions: EnvOptions {
    /// Those that every level has.
    fn common(&self) -> Common;
}

/// Makes the keywords of a level: its own, then those that every level has.
macro_rules! level_options {
    ($(#[$meta:meta])* pub struct $options:ident { $($own:tt)* }) => {
        cartwheel::options! {
            $(#[$meta])*
            pub struct $options {
                $($own)*
                /// Steps after which an episode is truncated; `None` for the level's own number.
                max_steps: Option<i64>,
                /// Whether the agent sees what is behind walls; `None` for the level's own rule.
                see_through_walls: Option<bool>,
                /// Columns and rows of the image, an odd number from 3 to 63.
                agent_view_size: usize = 7,
                /// Whether frames show which cells the agent sees.
                highlight: bool = true,
                /// Pixels along a side of a cell in frames.
                tile_size: usize = 32,
                /// Whether frames show what the agent sees instead of the whole grid.
                agent_pov: bool,
            }
        }

        impl $crate::env::LevelOptions for $options {
            fn common(&self) -> $crate::env::Common {
                $crate::env::Common {
                    max_steps: self.max_steps,
                    see_through_walls: self.see_through_walls,
                    agent_view_size: self.agent_view_size,
                    highlight: self.highlight,
                    tile_size: self.tile_size,
                    agent_pov: self.agent_pov,
                }
            }
        }
    };
}
pub(crate) use level_options;

/// The size and the rules of a level, where keywords do not change them.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub width: i32,
    pub height: i32,
    pub max_steps: i64,
    pub see_through_walls: bool,
}

impl Setup {
    /// A square.
    pub fn square(size: i32, max_steps: i64, see_through_walls: bool) -> Self {
        Self { width: size, height: size, max_steps, see_through_walls }
    }
}

/// A family of levels: how they are made, and what ends an episode.
pub trait Level: Sized + Send + 'static {
    /// Its keywords.
    type Options: LevelOptions;
    /// The state of an episode, other than the world.
    type Progress: State + Default + Send;
    /// The most letters of a mission.
    const MISSION: usize = 120;
    /// Number of actions.
    const ACTIONS: i64 = 7;

    /// The level with these keywords.
    ///
    /// # Errors
    ///
    /// The original refuses them, or would never end.
    fn new(options: &Self::Options) -> Result<(Self, Setup), Error>;

    /// Makes the world of an episode, which was cleared (`_gen_grid`).
    ///
    /// # Errors
    ///
    /// No level was found.
    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Self::Progress, Failure>;

    /// Does an action (`step`).
    ///
    /// # Errors
    ///
    /// An environment that the original ends with an exception.
    fn step(
        &self,
        _: &mut Self::Progress,
        world: &mut World,
        action: Action,
        _: &mut Rng,
    ) -> Result<Outcome, Failure> {
        Ok(world.act(action))
    }
}

/// One environment of a family of levels.
pub struct MiniGrid<L: Level> {
    level: L,
    progress: L::Progress,
    world: World,
    through_walls: bool,
    common: Common,
}

impl<L: Level> Env for MiniGrid<L> {
    type Options = L::Options;
    type ResetOptions = NoOptions;
    type Shared = ();
    type Action = i64;
    type Observation = Sight;
    type Info = ();

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray];

    fn spaces(options: &L::Options, (): &()) -> Spaces {
        let size = options.common().agent_view_size;
        let observation = Space::dict([
            ("direction", Space::discrete(4)),
            ("image", Space::integer_box(DType::U8, &[size, size, 3], 0, 255)),
            ("mission", Space::text(L::MISSION, LETTERS)),
        ]);
        Spaces { observation, action: Space::discrete(L::ACTIONS) }
    }

    fn new(options: &L::Options, _: &Arc<()>) -> Result<Self, Error> {
        let common = options.common();
        let refused = |name: &str, wanted: &str, got: String| {
            Err(Error::bad_options(format!("`{name}` must be {wanted}, got {got}")))
        };
        let seen = common.agent_view_size;
        if !(3..=MOST_SEEN).contains(&seen) || seen % 2 == 0 {
            return refused("agent_view_size", "an odd number from 3 to 63", seen.to_string());
        }
        if !(1..=1024).contains(&common.tile_size) {
            return refused("tile_size", "from 1 to 1,024", common.tile_size.to_string());
        }
        let (level, setup) = L::new(options)?;
        let max_steps = common.max_steps.unwrap_or(setup.max_steps);
        if max_steps < 1 {
            return refused("max_steps", "positive", max_steps.to_string());
        }
        let sizes = [setup.width, setup.height];
        if sizes.iter().any(|size| !(3..=1000).contains(size)) {
            let what = format!("the grid must have 3 to 1,000 columns and rows, got {sizes:?}");
            return Err(Error::bad_options(what));
        }
        let through_walls = common.see_through_walls.unwrap_or(setup.see_through_walls);
        let world = World::new(setup.width, setup.height, max_steps);
        Ok(Self { level, progress: L::Progress::default(), world, through_walls, common })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.world.clear();
        let named = |failure| Failure::new(format!("{}: {failure}", std::any::type_name::<L>()));
        self.progress = self.level.generate(&mut self.world, rng).map_err(named)?;
        Ok(())
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        let action = Action::from_number(action)?;
        let (progress, world) = (&mut self.progress, &mut self.world);
        let Outcome { reward, terminated } = self.level.step(progress, world, action, rng)?;
        let truncated = self.world.steps >= self.world.max_steps;
        Ok(Transition { reward, terminated, truncated })
    }

    fn observe(&self, mut sight: SightMut<'_>) {
        *sight.direction = i64::from(self.world.direction);
        let view = View::new(&self.world, self.common.agent_view_size);
        view.encode(&self.world, self.through_walls, sight.image);
        sight.mission.set(&self.world.mission);
    }

    fn info(&self) {}

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        picture::draw(&self.world, &self.common, self.through_walls, frame);
        Ok(())
    }

    cartwheel::state! { progress, world }
}
