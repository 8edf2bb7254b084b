//! Open doors, and pick up what is behind them
//! (`envs/{unlock,unlockpickup,blockedunlockpickup,redbluedoors}.py`).

use cartwheel::{Error, Failure, Rng};

use super::mazes::{pick_up, picked_up};
use super::require_size;
use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::{CommonOptions, level_options};
use crate::rooms::Rooms;
use crate::world::{Action, Area, Outcome, Place, Unmade, World, color, integer};

/// Columns and rows of a room.
const ROOM: i32 = 6;

/// Two rooms next to each other.
fn two_rooms(max_steps: i64) -> Setup {
    Setup::rooms(ROOM, [2, 1], max_steps)
}

fn is_open(world: &World, door: Place) -> bool {
    world.get(door).door == Door::Open
}

/// Open a locked door.
#[derive(Debug)]
pub struct Unlock;

impl Level for Unlock {
    type Options = CommonOptions;
    /// The door to open.
    type Progress = Place;
    const MISSION: usize = 40;

    fn new(_: &CommonOptions) -> Result<(Self, Setup), Error> {
        Ok((Self, two_rooms(8 * i64::from(ROOM).pow(2))))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Place, Failure> {
        let mut rooms = Rooms::new(world, ROOM, [2, 1], rng)?;
        let door = rooms.add_door(world, [0; 2], Some(0), None, Some(true), rng)?;
        rooms.add_object(world, [0; 2], Some(Kind::Key), Some(door.color), rng)?;
        rooms.place_agent(world, Some([0; 2]), rng)?;
        world.mission.push_str("open the door");
        Ok(door.place)
    }

    fn step(&self, door: &mut Place, step: &mut Step<'_>) -> Outcome {
        let outcome = step.act();
        let is_done = step.action == Action::Toggle && is_open(step.world, *door);
        if is_done { Outcome::end(step.world.success()) } else { outcome }
    }
}

/// Puts a box into the second of two rooms, behind a locked door that a ball may block, and the key into
/// the first.
pub(crate) fn lock_box_away(
    rooms: &mut Rooms,
    world: &mut World,
    is_blocked: bool,
    rng: &mut Rng,
) -> Result<Cell, Unmade> {
    let (target, _) = rooms.add_object(world, [1, 0], Some(Kind::Box), None, rng)?;
    let door = rooms.add_door(world, [0; 2], Some(0), None, Some(true), rng)?;
    if is_blocked {
        let color = color(rng)?;
        let ball = world.object(Kind::Ball, color);
        world.set([door.place[0] - 1, door.place[1]], ball);
    }
    rooms.add_object(world, [0; 2], Some(Kind::Key), Some(door.color), rng)?;
    Ok(target)
}

/// Pick up the box behind a locked door, which a ball may block.
#[derive(Debug)]
pub struct UnlockPickup<const BLOCKED: bool>;

impl<const BLOCKED: bool> Level for UnlockPickup<BLOCKED> {
    type Options = CommonOptions;
    /// The box to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(_: &CommonOptions) -> Result<(Self, Setup), Error> {
        let cells = i64::from(ROOM).pow(2);
        Ok((Self, two_rooms(if BLOCKED { 16 } else { 8 } * cells)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        let mut rooms = Rooms::new(world, ROOM, [2, 1], rng)?;
        let target = lock_box_away(&mut rooms, world, BLOCKED, rng)?;
        rooms.place_agent(world, Some([0; 2]), rng)?;
        world.mission = pick_up(target);
        Ok(Some(target))
    }

    fn step(&self, target: &mut Option<Cell>, step: &mut Step<'_>) -> Outcome {
        picked_up(step, *target)
    }
}

level_options! {
    /// Keywords of `RedBlueDoorEnv`.
    pub struct RedBlueDoorsOptions {
        /// Rows of the grid, and half of its columns.
        size: i32 = 8,
    }
}

/// Open the red door, then the blue one.
#[derive(Debug)]
pub struct RedBlueDoors {
    size: i32,
}

impl Level for RedBlueDoors {
    type Options = RedBlueDoorsOptions;
    /// The red and the blue door.
    type Progress = [Place; 2];
    const MISSION: usize = 40;

    fn new(options: &RedBlueDoorsOptions) -> Result<(Self, Setup), Error> {
        let size = options.size;
        require_size("size", size, [4, 500])?;
        let setup = Setup {
            width: 2 * size,
            height: size,
            max_steps: 20 * i64::from(size).pow(2),
            see_through_walls: false,
        };
        Ok((Self { size }, setup))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<[Place; 2], Failure> {
        let (size, left) = (self.size, self.size / 2);
        world.walls([0; 2], [2 * size, size]);
        world.walls([left, 0], [size; 2]);
        world.place_agent(Area { top: [left, 0], size: [size; 2] }, None, rng)?;
        let red_door = [left, integer(rng, 1, size - 1)?];
        world.set(red_door, Cell::door(Color::Red, Door::Closed));
        let blue_door = [left + size - 1, integer(rng, 1, size - 1)?];
        world.set(blue_door, Cell::door(Color::Blue, Door::Closed));
        world.mission.push_str("open the red door then the blue door");
        Ok([red_door, blue_door])
    }

    fn step(&self, doors: &mut [Place; 2], step: &mut Step<'_>) -> Outcome {
        let [red, blue] = doors.map(|door| is_open(step.world, door));
        let outcome = step.act();
        match doors.map(|door| is_open(step.world, door)) {
            [_, true] => Outcome::end(if red { step.world.success() } else { 0.0 }),
            [true, false] if blue => Outcome::end(0.0),
            _ => outcome,
        }
    }
}
