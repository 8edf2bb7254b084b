//! A hallway that asks for memory, and a playground without a task (`envs/{memory,playground}.py`).

use cartwheel::{Error, Failure, Rng};

use super::require;
use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::{CommonOptions, level_options};
use crate::rooms::OBJECTS;
use crate::world::{Action, Direction, Outcome, Place, World, element, integer};

level_options! {
    /// Keywords of `MemoryEnv`.
    pub struct MemoryOptions {
        /// Columns and rows of the grid, an odd number.
        size: i32 = 9,
        /// Whether the length of the hallway is random.
        random_length: bool,
    }
}

/// Go to the end of the hallway that has the object of the first room.
#[derive(Debug)]
pub struct Memory {
    random_length: bool,
}

impl Level for Memory {
    type Options = MemoryOptions;
    /// The ends of the hallway: success and failure.
    type Progress = [Place; 2];
    const MISSION: usize = 60;

    fn new(options: &MemoryOptions) -> Result<(Self, Setup), Error> {
        let size = options.size;
        require(size % 2 == 1 && size >= 7, "size", "an odd number from 7 on", size)?;
        let level = Self { random_length: options.random_length };
        Ok((level, Setup::square(size, 5 * i64::from(size).pow(2), false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<[Place; 2], Failure> {
        let [width, height] = [world.width, world.height];
        world.outer_walls();
        let middle = height / 2;
        let end = if self.random_length { integer(rng, 4, width - 2)? } else { width - 3 };
        for side in [-1, 1] {
            world.horizontal([1, middle + 2 * side], 4, Cell::WALL);
            world.set([4, middle + side], Cell::WALL);
            world.horizontal([5, middle + side], end - 5, Cell::WALL);
        }
        for row in 0..height {
            if row != middle {
                world.set([end, row], Cell::WALL);
            }
            world.set([end + 2, row], Cell::WALL);
        }
        world.agent = [integer(rng, 1, end + 1)?, middle];
        world.direction = Direction::RIGHT;
        let kinds = [Kind::Key, Kind::Ball];
        let green = |world: &mut World, place: Place, kind: Kind| {
            let object = world.object(kind, Color::Green);
            world.set(place, object);
        };
        let shown = element(rng, &kinds)?;
        green(world, [1, middle - 1], shown);
        let others = element(rng, &[[Kind::Ball, Kind::Key], [Kind::Key, Kind::Ball]])?;
        green(world, [end + 1, middle - 2], others[0]);
        green(world, [end + 1, middle + 2], others[1]);
        let mut ends = [[end + 1, middle - 1], [end + 1, middle + 1]];
        if shown != others[0] {
            ends.reverse();
        }
        world.mission.push_str("go to the matching object at the end of the hallway");
        Ok(ends)
    }

    fn step(&self, [success, failure]: &mut [Place; 2], step: &mut Step<'_>) -> Outcome {
        if step.action == Action::Pickup {
            step.action = Action::Toggle;
        }
        let outcome = step.act();
        match step.world.agent {
            agent if agent == *success => Outcome::end(step.world.success()),
            agent if agent == *failure => Outcome::end(0.0),
            _ => outcome,
        }
    }
}

/// Nine rooms with twelve objects, and no task.
#[derive(Debug)]
pub struct Playground;

impl Level for Playground {
    type Options = CommonOptions;
    type Progress = ();
    const MISSION: usize = 1;

    fn new(_: &CommonOptions) -> Result<(Self, Setup), Error> {
        Ok((Self, Setup::square(19, 100, false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        world.outer_walls();
        let [wide, high] = [world.width / 3, world.height / 3];
        for row in 0..3 {
            for column in 0..3 {
                let [left, up] = [column * wide, row * high];
                let [right, down] = [left + wide, up + high];
                if column < 2 {
                    world.vertical([right, up], high, Cell::WALL);
                    let place = [right, integer(rng, up + 1, down - 1)?];
                    world.set(place, Cell::door(element(rng, &Color::SORTED)?, Door::Closed));
                }
                if row < 2 {
                    world.horizontal([left, down], wide, Cell::WALL);
                    let place = [integer(rng, left + 1, right - 1)?, down];
                    world.set(place, Cell::door(element(rng, &Color::SORTED)?, Door::Closed));
                }
            }
        }
        world.place_agent(world.everywhere(), None, rng)?;
        for _ in 0..12 {
            let kind = element(rng, &OBJECTS)?;
            let color = element(rng, &Color::SORTED)?;
            let object = world.object(kind, color);
            world.place_anywhere(object, rng)?;
        }
        Ok(())
    }
}
