//! Fetch an object, go to it, or put it near another
//! (`envs/{fetch,gotodoor,gotoobject,putnear}.py`).

use cartwheel::{Error, Failure, Rng};

use super::{other_number, other_object, require, require_size};
use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::level_options;
use crate::rooms::OBJECTS;
use crate::world::{Action, Area, MAX_TRIES, Outcome, Place, World, element, integer};

/// Whether the agent is next to a place, not diagonally.
fn is_next_to(world: &World, place: Place) -> bool {
    let [x, y] = [0, 1].map(|at| (world.agent[at] - place[at]).abs());
    x + y == 1
}

/// The color and the kind, as missions name an object.
fn named(object: Cell) -> String {
    format!("{} {}", object.color.name(), object.kind.name())
}

level_options! {
    /// Keywords of `FetchEnv`.
    pub struct FetchOptions {
        /// Columns and rows of the grid.
        size: i32 = 8,
        /// Number of objects.
        numObjs: usize = 3,
    }
}

/// Pick up the object that the mission names.
#[derive(Debug)]
pub struct Fetch {
    count: usize,
}

impl Level for Fetch {
    type Options = FetchOptions;
    /// The object to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(options: &FetchOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [4, 1000])?;
        require(options.numObjs > 0, "numObjs", "positive", options.numObjs)?;
        let max_steps = 5 * i64::from(options.size).pow(2);
        let level = Self { count: options.numObjs };
        Ok((level, Setup::square(options.size, max_steps, true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        world.outer_walls();
        let mut objects = Vec::new();
        while objects.len() < self.count {
            let kind = element(rng, &[Kind::Key, Kind::Ball])?;
            let color = element(rng, &Color::SORTED)?;
            let object = world.object(kind, color);
            world.place_anywhere(object, rng)?;
            objects.push(object);
        }
        world.place_agent(world.everywhere(), None, rng)?;
        let target = element(rng, &objects)?;
        let verbs = ["get a", "go get a", "fetch a", "go fetch a", "you must fetch a"];
        world.mission = format!("{} {}", element(rng, &verbs)?, named(target));
        Ok(Some(target))
    }

    fn step(&self, target: &mut Option<Cell>, step: &mut Step<'_>) -> Outcome {
        let outcome = step.act();
        let carrying = step.world.carrying;
        if carrying.is_empty() {
            return outcome;
        }
        // Another object that looks the same will do.
        let is_right = target.is_some_and(|target| target.encode() == carrying.encode());
        Outcome::end(if is_right { step.world.success() } else { 0.0 })
    }
}

level_options! {
    /// Keywords of `GoToDoorEnv`.
    pub struct GoToDoorOptions {
        /// The most columns and rows of the room, which are random from 5 on.
        size: i32 = 5,
    }
}

/// Say that the work is done next to the door that the mission names.
#[derive(Debug)]
pub struct GoToDoor;

impl Level for GoToDoor {
    type Options = GoToDoorOptions;
    /// The door to go to.
    type Progress = Place;
    const MISSION: usize = 40;

    fn new(options: &GoToDoorOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [5, 1000])?;
        let max_steps = 4 * i64::from(options.size).pow(2);
        Ok((Self, Setup::square(options.size, max_steps, true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Place, Failure> {
        let width = integer(rng, 5, world.width + 1)?;
        let height = integer(rng, 5, world.height + 1)?;
        world.walls([0; 2], [width, height]);
        let doors = [
            [integer(rng, 2, width - 2)?, 0],
            [integer(rng, 2, width - 2)?, height - 1],
            [0, integer(rng, 2, height - 2)?],
            [width - 1, integer(rng, 2, height - 2)?],
        ];
        let mut colors = Vec::new();
        for _ in 0..MAX_TRIES {
            if colors.len() == doors.len() {
                break;
            }
            let color = element(rng, &Color::SORTED)?;
            if !colors.contains(&color) {
                colors.push(color);
            }
        }
        for (door, color) in doors.iter().zip(&colors) {
            world.set(*door, Cell::door(*color, Door::Closed));
        }
        world.place_agent(Area { top: [0; 2], size: [width, height] }, None, rng)?;
        let target = element(rng, &[0, 1, 2, 3])?;
        world.mission = format!("go to the {} door", colors[target].name());
        Ok(doors[target])
    }

    fn step(&self, target: &mut Place, step: &mut Step<'_>) -> Outcome {
        done_next_to(step, *target)
    }
}

/// The end of an episode by the last action, with a reward next to the target; toggling ends it, too.
fn done_next_to(step: &mut Step<'_>, target: Place) -> Outcome {
    let outcome = step.act();
    match step.action {
        Action::Done if is_next_to(step.world, target) => Outcome::end(step.world.success()),
        Action::Done | Action::Toggle => Outcome { terminated: true, ..outcome },
        _ => outcome,
    }
}

level_options! {
    /// Keywords of `GoToObjectEnv`.
    pub struct GoToObjectOptions {
        /// Columns and rows of the grid.
        size: i32 = 6,
        /// Number of objects, at most 18.
        numObjs: usize = 2,
    }
}

/// Say that the work is done next to the object that the mission names.
#[derive(Debug)]
pub struct GoToObject {
    count: usize,
}

/// Places different objects, where `reject` allows it; returns what they are and where.
fn scattered(
    world: &mut World,
    count: usize,
    rng: &mut Rng,
    reject: impl Fn(&[Place], Place) -> bool,
) -> Result<(Vec<Cell>, Vec<Place>), Failure> {
    let (mut taken, mut objects, mut places) = (Vec::new(), Vec::new(), Vec::new());
    while objects.len() < count {
        let (kind, color) = other_object(rng, &OBJECTS, &taken)?;
        let object = world.object(kind, color);
        let everywhere = world.everywhere();
        let place =
            world.place(object, everywhere, None, rng, |_, place| reject(&places, place))?;
        taken.push((kind, color));
        objects.push(object);
        places.push(place);
    }
    Ok((objects, places))
}

impl Level for GoToObject {
    type Options = GoToObjectOptions;
    /// Where the object is to which the agent goes.
    type Progress = Place;
    const MISSION: usize = 40;

    fn new(options: &GoToObjectOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [4, 1000])?;
        require((1..=18).contains(&options.numObjs), "numObjs", "from 1 to 18", options.numObjs)?;
        let max_steps = 5 * i64::from(options.size).pow(2);
        let level = Self { count: options.numObjs };
        Ok((level, Setup::square(options.size, max_steps, true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Place, Failure> {
        world.outer_walls();
        let (objects, places) = scattered(world, self.count, rng, |_, _| false)?;
        world.place_agent(world.everywhere(), None, rng)?;
        let target = usize::try_from(integer(rng, 0, i32::try_from(objects.len())?)?)?;
        world.mission = format!("go to the {}", named(objects[target]));
        Ok(places[target])
    }

    fn step(&self, target: &mut Place, step: &mut Step<'_>) -> Outcome {
        done_next_to(step, *target)
    }
}

level_options! {
    /// Keywords of `PutNearEnv`.
    pub struct PutNearOptions {
        /// Columns and rows of the grid.
        size: i32 = 6,
        /// Number of objects, from 2 to 18.
        numObjs: usize = 2,
    }
}

/// Put an object next to another.
#[derive(Debug)]
pub struct PutNear {
    count: usize,
}

/// Whether two places are the same or touch, also diagonally.
fn touch(one: Place, other: Place) -> bool {
    (0..2).all(|at| (one[at] - other[at]).abs() <= 1)
}

impl Level for PutNear {
    type Options = PutNearOptions;
    /// The object to move, and the place next to which it belongs.
    type Progress = Option<(Cell, Place)>;
    const MISSION: usize = 60;

    fn new(options: &PutNearOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [4, 1000])?;
        require((2..=18).contains(&options.numObjs), "numObjs", "from 2 to 18", options.numObjs)?;
        let level = Self { count: options.numObjs };
        Ok((level, Setup::square(options.size, 5 * i64::from(options.size), true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<(Cell, Place)>, Failure> {
        world.outer_walls();
        let near = |places: &[Place], place: Place| places.iter().any(|&other| touch(place, other));
        let (objects, places) = scattered(world, self.count, rng, near)?;
        world.place_agent(world.everywhere(), None, rng)?;
        let moved = usize::try_from(integer(rng, 0, i32::try_from(objects.len())?)?)?;
        let target = other_number(rng, objects.len(), moved)?;
        world.mission =
            format!("put the {} near the {}", named(objects[moved]), named(objects[target]));
        Ok(Some((objects[moved], places[target])))
    }

    fn step(&self, task: &mut Option<(Cell, Place)>, step: &mut Step<'_>) -> Outcome {
        let before = step.world.carrying;
        let outcome = step.act();
        let Some((moved, target)) = *task else { return outcome };
        let carrying = step.world.carrying;
        match step.action {
            Action::Pickup if !carrying.is_empty() && carrying.encode() != moved.encode() => {
                Outcome { terminated: true, ..outcome }
            }
            Action::Drop if !before.is_empty() => {
                let front = step.world.front();
                let is_near = step.world.get(front) == before && touch(front, target);
                Outcome::end(if is_near { step.world.success() } else { outcome.reward })
            }
            _ => outcome,
        }
    }
}
