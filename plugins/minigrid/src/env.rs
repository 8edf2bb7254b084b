//! One environment: a level in a world, as cartwheel steps it.

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, Frame, NoOptions, ObservationOf, Parameter, ParameterValue, RenderMode,
    Rng, Space, Spaces, State, Transition, wrong,
};

use crate::observation::{Observation, Shown, Tiles, is_letter};
use crate::options::{Common, LevelOptions, require};
use crate::picture;
use crate::view::{MAX_VIEW_SIZE, Scene, View};
use crate::world::{Action, Outcome, World};

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

    /// Rooms of this size, walls included.
    pub fn rooms(size: i32, [columns, rows]: [i32; 2], max_steps: i64) -> Self {
        let along = |rooms: i32| (size - 1) * rooms + 1;
        Self { width: along(columns), height: along(rows), max_steps, see_through_walls: false }
    }
}

/// A step of an episode.
#[derive(Debug)]
pub struct Step<'a> {
    pub world: &'a mut World,
    pub action: Action,
    pub rng: &'a mut Rng,
}

impl Step<'_> {
    /// Does the action; see [`World::act`].
    pub fn act(&mut self) -> Outcome {
        self.world.act(self.action)
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

    /// Does the action of a step (`step`).
    fn step(&self, _: &mut Self::Progress, step: &mut Step<'_>) -> Outcome {
        step.act()
    }
}

/// One environment of a family of levels.
pub struct MiniGrid<L: Level> {
    level: L,
    progress: L::Progress,
    world: World,
    through_walls: bool,
    common: Common,
    shown: Shown,
    tiles: Arc<Tiles>,
}

impl<L: Level> MiniGrid<L> {
    /// The world, as the agent sees it.
    fn scene(&self) -> Scene<'_> {
        let (through_walls, highlight) = (self.through_walls, self.common.highlight);
        let view = View::new(&self.world, self.common.agent_view_size);
        Scene { world: &self.world, view, through_walls, highlight }
    }
}

impl<L: Level> Env for MiniGrid<L> {
    type Options = L::Options;
    type ResetOptions = NoOptions;
    type Shared = Tiles;
    type Action = i64;
    type Observation = Observation;
    type Info = ();

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray];
    const RENDER_FPS: u32 = 10;

    fn spaces(options: &L::Options, _: &Tiles) -> Spaces {
        // The options were accepted by `new`.
        let observation = L::new(options).and_then(|(_, setup)| {
            let grid = [setup.width, setup.height].map(|cells| cells.unsigned_abs() as usize);
            let common = options.common();
            Ok(Shown::new(&common)?.space(grid, common.agent_view_size, L::MISSION))
        });
        let observation = observation.unwrap_or(Space::Tuple(Vec::new()));
        Spaces { observation, action: Space::discrete(L::ACTIONS) }
    }

    fn new(options: &L::Options, tiles: &Arc<Tiles>) -> Result<Self, Error> {
        let common = options.common();
        let (seen, tile) = (common.agent_view_size, common.tile_size);
        let can_see = (3..=MAX_VIEW_SIZE).contains(&seen) && seen % 2 == 1;
        require(can_see, "agent_view_size", "an odd number from 3 to 63", seen)?;
        require((1..=1024).contains(&tile), "tile_size", "from 1 to 1,024", tile)?;
        let (level, setup) = L::new(options)?;
        let max_steps = common.max_steps.unwrap_or(setup.max_steps);
        require(max_steps > 0, "max_steps", "positive", max_steps)?;
        let sizes = [setup.width, setup.height];
        if sizes.iter().any(|size| !(3..=1000).contains(size)) {
            let what = format!("the grid must have 3 to 1,000 columns and rows, got {sizes:?}");
            return Err(Error::bad_options(what));
        }
        let through_walls = common.see_through_walls.unwrap_or(setup.see_through_walls);
        let world = World::new(setup.width, setup.height, max_steps);
        Ok(Self {
            level,
            progress: L::Progress::default(),
            world,
            through_walls,
            shown: Shown::new(&common)?,
            common,
            tiles: Arc::clone(tiles),
        })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.world.clear();
        let named = |failure| Failure::new(format!("{}: {failure}", std::any::type_name::<L>()));
        self.progress = self.level.generate(&mut self.world, rng).map_err(named)?;
        let letters = self.world.mission.len();
        match self.shown.most_letters() {
            Some(most) if letters > most => Err(Failure::new(format!(
                "the mission has {letters} letters, more than `maxStrLen`, {most}: {:?}",
                self.world.mission
            ))),
            _ => Ok(()),
        }
    }

    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        let action = Action::from_number(action)?;
        let mut step = Step { world: &mut self.world, action, rng };
        let Outcome { reward, terminated } = self.level.step(&mut self.progress, &mut step);
        let truncated = self.world.steps >= self.world.max_steps;
        Ok(Transition { reward, terminated, truncated })
    }

    fn observe(&self, place: ObservationOf<'_, Self>) {
        self.shown.write(self.scene(), &self.tiles, place);
    }

    fn info(&self) {}

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        picture::draw(self.scene(), &self.common, frame);
        Ok(())
    }

    cartwheel::parameters! {
        agent_dir: world.direction,
        agent_pos: world.agent,
        max_steps: world.max_steps,
        mission: world.mission,
        see_through_walls: through_walls,
        step_count: world.steps
    }
    fn check_parameter(&self, name: &str) -> Result<(), Error> {
        let World { agent, width, height, max_steps, mission, .. } = &self.world;
        let most = self.shown.most_letters().unwrap_or(L::MISSION);
        let wanted = match name {
            "agent_pos"
                if !(0..*width).contains(&agent[0]) || !(0..*height).contains(&agent[1]) =>
            {
                format!("a column from 0 to {} and a row from 0 to {}", width - 1, height - 1)
            }
            "max_steps" if *max_steps <= 0 => "positive".to_owned(),
            "mission" if mission.len() > most || !mission.chars().all(is_letter) => {
                format!("at most {most} small letters, spaces and commas")
            }
            _ => return Ok(()),
        };
        let got = self.parameter(name).map_or(ParameterValue::None, Parameter::get);
        Err(wrong(&wanted, &got))
    }

    cartwheel::state! { progress, world, through_walls }
}
