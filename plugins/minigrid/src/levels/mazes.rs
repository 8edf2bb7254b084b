//! Find a ball in rooms with locked doors (`envs/{keycorridor,obstructedmaze,obstructedmaze_v1}.py`).

use cartwheel::{Error, Failure, Rng};

use super::{require, require_size};
use crate::cell::{Cell, Color, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::level_options;
use crate::rooms::{AddedDoor, OBJECTS, Rooms};
use crate::world::{AHEAD, Action, Outcome, Unmade, World, element, integer, subset};

/// The end of an episode by picking up one object.
pub(super) fn picked_up(step: &mut Step<'_>, object: Option<Cell>) -> Outcome {
    let outcome = step.act();
    let is_carried = step.action == Action::Pickup && Some(step.world.carrying) == object;
    if is_carried { Outcome::end(step.world.success()) } else { outcome }
}

/// The mission to pick up an object.
pub(super) fn pick_up(object: Cell) -> String {
    format!("pick up the {} {}", object.color.name(), object.kind.name())
}

level_options! {
    /// Keywords of `KeyCorridorEnv`.
    pub struct KeyCorridorOptions {
        /// Rows of rooms.
        num_rows: i32 = 3,
        /// The object to pick up: "key", "ball" or "box".
        obj_type: String = "ball".to_owned(),
        /// Columns and rows of a room, walls included.
        room_size: i32 = 6,
    }
}

/// A corridor with rooms on both sides; the object is behind a locked door.
#[derive(Debug, Clone, Copy)]
pub struct KeyCorridor {
    room: i32,
    rows: i32,
    pub(crate) kind: Kind,
}

impl KeyCorridor {
    /// The corridor with these keywords.
    pub(crate) fn from_options(options: &KeyCorridorOptions) -> Result<Self, Error> {
        let kind = Kind::from_name(&options.obj_type).filter(|kind| OBJECTS.contains(kind));
        let wanted = "\"key\", \"ball\" or \"box\"";
        require(kind.is_some(), "obj_type", wanted, &options.obj_type)?;
        let (room, rows) = (options.room_size, options.num_rows);
        Ok(Self { room, rows, kind: kind.unwrap_or(Kind::Ball) })
    }

    /// The limit of steps.
    pub(crate) fn max_steps(self) -> i64 {
        30 * i64::from(self.room).pow(2)
    }

    /// Makes the level; returns the object to pick up.
    pub(crate) fn fill(
        self,
        rooms: &mut Rooms,
        world: &mut World,
        rng: &mut Rng,
    ) -> Result<Cell, Unmade> {
        for row in 1..self.rows {
            rooms.remove_wall(world, [1, row], 3)?;
        }
        let behind = [2, integer(rng, 0, self.rows)?];
        let door = rooms.add_door(world, behind, Some(2), None, Some(true), rng)?;
        let (target, _) = rooms.add_object(world, behind, Some(self.kind), None, rng)?;
        let with_key = [0, integer(rng, 0, self.rows)?];
        rooms.add_object(world, with_key, Some(Kind::Key), Some(door.color), rng)?;
        rooms.place_agent(world, Some([1, self.rows / 2]), rng)?;
        rooms.connect_all(world, &Color::SORTED, rng)?;
        Ok(target)
    }
}

impl Level for KeyCorridor {
    type Options = KeyCorridorOptions;
    /// The object to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(options: &KeyCorridorOptions) -> Result<(Self, Setup), Error> {
        let level = Self::from_options(options)?;
        require_size("room_size", level.room, [3, 100])?;
        require_size("num_rows", level.rows, [1, 100])?;
        Ok((level, Setup::rooms(level.room, [3, level.rows], level.max_steps())))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        let mut rooms = Rooms::new(world, self.room, [3, self.rows], rng)?;
        let target = self.fill(&mut rooms, world, rng)?;
        world.mission = pick_up(target);
        Ok(Some(target))
    }

    fn step(&self, target: &mut Option<Cell>, step: &mut Step<'_>) -> Outcome {
        picked_up(step, *target)
    }
}

/// Columns and rows of a room of an obstructed maze.
const ROOM: i32 = 6;
/// The color of the ball to find, of those that obstruct doors, and of boxes.
const BALL: Color = Color::SORTED[0];
const OBSTRUCTING: Color = Color::SORTED[1];
const BOXES: Color = Color::SORTED[2];

/// Locks of doors.
#[derive(Debug, Clone, Copy)]
struct Locks {
    key_in_box: bool,
    blocked: bool,
}

impl Locks {
    /// Adds a locked door, with a ball in front of it where it is blocked.
    fn add_door(
        self,
        world: &mut World,
        rooms: &mut Rooms,
        room: [i32; 2],
        side: usize,
        color: Color,
        rng: &mut Rng,
    ) -> Result<AddedDoor, Unmade> {
        let door = rooms.add_door(world, room, Some(side), Some(color), Some(true), rng)?;
        if self.blocked {
            let ball = world.object(Kind::Ball, OBSTRUCTING);
            world.set([0, 1].map(|at| door.place[at] - AHEAD[side][at]), ball);
        }
        Ok(door)
    }

    /// Adds the key of a door of this color, in a box or not.
    fn add_key(
        self,
        world: &mut World,
        rooms: &mut Rooms,
        room: [i32; 2],
        color: Color,
        rng: &mut Rng,
    ) -> Result<(), Unmade> {
        let key = world.object(Kind::Key, color);
        let object = if self.key_in_box { world.box_with(BOXES, key) } else { key };
        rooms.put(world, room, object, rng).map(drop)
    }
}

/// The colors of doors, in a random order.
fn door_colors(rng: &mut Rng) -> Result<Vec<Color>, Failure> {
    subset(rng, &Color::SORTED, Color::SORTED.len())
}

/// The size of a maze in which the agent visits that many rooms.
fn maze(columns: i32, rows: i32, visited: i64) -> Setup {
    Setup::rooms(ROOM, [columns, rows], 4 * visited * i64::from(ROOM).pow(2))
}

level_options! {
    /// Keywords of `ObstructedMaze_1Dlhb`.
    pub struct OneDoorOptions {
        /// Whether the key is in a box.
        key_in_box: bool = true,
        /// Whether a ball is in front of the door.
        blocked: bool = true,
    }
}

/// Two rooms with a locked door between them.
#[derive(Debug)]
pub struct OneDoor {
    locks: Locks,
}

impl Level for OneDoor {
    type Options = OneDoorOptions;
    /// The object to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(options: &OneDoorOptions) -> Result<(Self, Setup), Error> {
        let locks = Locks { key_in_box: options.key_in_box, blocked: options.blocked };
        Ok((Self { locks }, maze(2, 1, 2)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        let mut rooms = Rooms::new(world, ROOM, [2, 1], rng)?;
        let colors = door_colors(rng)?;
        self.locks.add_door(world, &mut rooms, [0; 2], 0, colors[0], rng)?;
        self.locks.add_key(world, &mut rooms, [0; 2], colors[0], rng)?;
        let (target, _) = rooms.add_object(world, [1, 0], Some(Kind::Ball), Some(BALL), rng)?;
        rooms.place_agent(world, Some([0; 2]), rng)?;
        world.mission = pick_up(target);
        Ok(Some(target))
    }

    fn step(&self, target: &mut Option<Cell>, step: &mut Step<'_>) -> Outcome {
        picked_up(step, *target)
    }
}

level_options! {
    /// Keywords of `ObstructedMaze_Full` and `ObstructedMaze_Full_V1`.
    pub struct FullMazeOptions {
        /// Column and row of the room in which the agent begins.
        agent_room: [i32; 2] = [1, 1],
        /// Whether keys are in boxes.
        key_in_box: bool = true,
        /// Whether balls are in front of doors.
        blocked: bool = true,
        /// Number of sides with doors, and of corners that may have the ball, from 1 to 4.
        num_quarters: usize = 4,
        /// Rooms that an agent visits, for the limit of steps.
        num_rooms_visited: i64 = 25,
    }
}

/// Nine rooms with locked doors. In version 1 no ball can cover a key: keys come after all balls.
#[derive(Debug)]
pub struct FullMaze<const VERSION: u8> {
    locks: Locks,
    start: [i32; 2],
    quarters: usize,
}

impl<const VERSION: u8> Level for FullMaze<VERSION> {
    type Options = FullMazeOptions;
    /// The object to pick up.
    type Progress = Option<Cell>;
    const MISSION: usize = 40;

    fn new(options: &FullMazeOptions) -> Result<(Self, Setup), Error> {
        let (start, quarters) = (options.agent_room, options.num_quarters);
        let is_room = start.iter().all(|at| (0..3).contains(at));
        require(is_room, "agent_room", "a column and a row from 0 to 2", start)?;
        require((1..=4).contains(&quarters), "num_quarters", "from 1 to 4", quarters)?;
        let visited = options.num_rooms_visited;
        require((1..=1_000_000).contains(&visited), "num_rooms_visited", "positive", visited)?;
        let locks = Locks { key_in_box: options.key_in_box, blocked: options.blocked };
        Ok((Self { locks, start, quarters }, maze(3, 3, visited)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Cell>, Failure> {
        const SIDES: [[i32; 2]; 4] = [[2, 1], [1, 2], [0, 1], [1, 0]];
        const CORNERS: [[i32; 2]; 4] = [[2, 0], [2, 2], [0, 2], [0, 0]];
        let mut rooms = Rooms::new(world, ROOM, [3, 3], rng)?;
        let colors = door_colors(rng)?;
        for (side, &room) in SIDES[..self.quarters].iter().enumerate() {
            rooms.add_door(world, [1; 2], Some(side), Some(colors[side]), Some(false), rng)?;
            // The doors to both sides; the colors of six doors begin again at the last one.
            let doors = [((side + 3) % 4, (side + 5) % 6), ((side + 1) % 4, (side + 1) % 6)];
            for (turned, color) in doors {
                self.locks.add_door(world, &mut rooms, room, turned, colors[color], rng)?;
                if VERSION == 0 {
                    self.locks.add_key(world, &mut rooms, room, colors[color], rng)?;
                }
            }
            if VERSION > 0 {
                for (_, color) in doors {
                    self.locks.add_key(world, &mut rooms, room, colors[color], rng)?;
                }
            }
        }
        let corner = element(rng, &CORNERS[..self.quarters])?;
        let (target, _) = rooms.add_object(world, corner, Some(Kind::Ball), Some(BALL), rng)?;
        rooms.place_agent(world, Some(self.start), rng)?;
        world.mission = pick_up(target);
        Ok(Some(target))
    }

    fn step(&self, target: &mut Option<Cell>, step: &mut Step<'_>) -> Outcome {
        picked_up(step, *target)
    }
}
