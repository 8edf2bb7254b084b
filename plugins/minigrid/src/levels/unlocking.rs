//! Open doors, and pick up what is behind them
//! (`envs/{unlock,unlockpickup,blockedunlockpickup,redbluedoors}.py`).

use cartwheel::{Error, Failure, Rng};

use super::mazes::{pick_up, picked_up};
use super::require_size;
use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup, level_options};
use crate::rooms::Rooms;
use crate::world::{Action, Area, Outcome, Place, World, color, integer};

/// Columns and rows of a room.
const ROOM: i32 = 6;

/// Two rooms next to each other.
fn two_rooms(max_steps: i64) -> Setup {
    Setup { width: 2 * ROOM - 1, height: ROOM, max_steps, see_through_walls: false }
}

fn is_open(world: &World, door: Place) -> bool {
    world.get(door).door == Door::Open
}

level_options! {
    /// Keywords of `UnlockEnv`.
    pub struct UnlockOptions {}
}

/// Open a locked door.
#[derive(Debug)]
pub struct Unlock;

impl Level for Unlock {
    type Options = UnlockOptions;
    /// The door to open.
    type Progress = Place;
    const MISSION: usize = 40;

    fn new(_: &UnlockOptions) -> Result<(Self, Setup), Error> {
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

    fn step(
        &self,
        door: &mut Place,
        world: &mut World,
        action: Action,
        _: &mut Rng,
    ) -> Result<Outcome, Failure> {
        let outcome = world.act(action);
        let is_done = action == Action::Toggle && is_open(world, *door);
        Ok(if is_done { Outcome::end(world.success()) } else { outcome })
    }
}

level_options! {
    /// Keywords of `UnlockPickupEnv` and `BlockedUnlockPickupEnv`.
    pub struct UnlockPickupOptions {}
}

/// Pick up the box behind a locked door, which a ball may block.
#[derive(Debug)]
pub struct UnlockPickup<const BLOCKED: bool>;

impl<const BLOCKED: bool> Level for UnlockPickup<BLOCKED> {
    type Options = UnlockPickupOptions;
    /// The box to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(_: &UnlockPickupOptions) -> Result<(Self, Setup), Error> {
        let cells = i64::from(ROOM).pow(2);
        Ok((Self, two_rooms(if BLOCKED { 16 } else { 8 } * cells)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        let mut rooms = Rooms::new(world, ROOM, [2, 1], rng)?;
        let (target, _) = rooms.add_object(world, [1, 0], Some(Kind::Box), None, rng)?;
        let door = rooms.add_door(world, [0; 2], Some(0), None, Some(true), rng)?;
        if BLOCKED {
            let color = color(rng)?;
            let ball = world.object(Kind::Ball, color);
            world.set([door.place[0] - 1, door.place[1]], ball);
        }
        rooms.add_object(world, [0; 2], Some(Kind::Key), Some(door.color), rng)?;
        rooms.place_agent(world, Some([0; 2]), rng)?;
        world.mission = pick_up(target);
        Ok(Some(target))
    }

    fn step(
        &self,
        target: &mut Option<Cell>,
        world: &mut World,
        action: Action,
        _: &mut Rng,
    ) -> Result<Outcome, Failure> {
        Ok(picked_up(world, action, *target))
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

    fn step(
        &self,
        doors: &mut [Place; 2],
        world: &mut World,
        action: Action,
        _: &mut Rng,
    ) -> Result<Outcome, Failure> {
        let [red, blue] = doors.map(|door| is_open(world, door));
        let outcome = world.act(action);
        Ok(match doors.map(|door| is_open(world, door)) {
            [_, true] => Outcome::end(if red { world.success() } else { 0.0 }),
            [true, false] if blue => Outcome::end(0.0),
            _ => outcome,
        })
    }
}
