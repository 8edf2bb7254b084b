//! The levels of BabyAI: rooms, and an instruction to follow (`envs/babyai`). A file for each module of
//! the original.

pub mod go_to;
mod instruction;
pub mod open;
mod options;
pub mod other;
pub mod pickup;
pub mod put_next;
pub mod synth;
pub mod unlock;

use cartwheel::{Error, Failure, Rng};

pub use instruction::{Described, Instruction, Location, Status, Watch};

use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::{LevelOptions, require};
use crate::rooms::{AddedDoor, Rooms, Side};
use crate::world::{
    AHEAD, Action, MAX_TRIES, Outcome, Place, Unmade, World, element, integer, subset,
};

/// Levels that are made before a task is given up: the original would go on forever.
const MAX_LEVELS: u32 = 100_000;

/// The rooms of a task.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns and rows of a room, walls included.
    pub size: i32,
    pub columns: i32,
    pub rows: i32,
    /// The limit of steps; `None` where it depends on the instruction.
    pub max_steps: Option<i64>,
}

impl Layout {
    /// Nine rooms.
    pub fn nine(size: i32) -> Self {
        Self::new(size, [3; 2])
    }

    /// One room.
    pub fn one(size: i32) -> Self {
        Self::new(size, [1; 2])
    }

    /// Rooms in columns and rows.
    pub fn new(size: i32, [columns, rows]: [i32; 2]) -> Self {
        Self { size, columns, rows, max_steps: None }
    }
}

/// A family of levels: which objects there are, and what is to be done.
pub trait Task: Sized + Send + 'static {
    /// Its keywords.
    type Options: LevelOptions;
    /// The most letters of a mission.
    const MISSION: usize = 120;

    /// The task with these keywords.
    ///
    /// # Errors
    ///
    /// The original refuses them.
    fn new(options: &Self::Options) -> Result<(Self, Layout), Error>;

    /// Makes a level and its instruction (`gen_mission`).
    ///
    /// # Errors
    ///
    /// [`Unmade`].
    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade>;
}

/// A level that is being made.
#[derive(Debug)]
pub struct Maker<'a> {
    pub world: &'a mut World,
    pub rooms: Rooms,
    pub rng: &'a mut Rng,
    /// Whether keys of locked doors are left alone.
    pub keeps_keys: bool,
    /// The object that the agent carries when the episode begins, and where it still sees it.
    pub carried: Option<(Cell, Place)>,
}

impl Maker<'_> {
    /// See [`Rooms::place_agent`].
    pub fn place_agent(&mut self, room: Option<Place>) -> Result<(), Unmade> {
        self.rooms.place_agent(self.world, room, self.rng)
    }

    /// The agent in a random room, but not in this one.
    pub fn place_agent_outside(&mut self, room: Option<Place>) -> Result<(), Unmade> {
        for _ in 0..MAX_TRIES {
            self.place_agent(None)?;
            if Some(self.rooms.of(self.world.agent)) != room {
                return Ok(());
            }
        }
        Err(Failure::new("the only room is locked").into())
    }

    /// See [`Rooms::connect_all`].
    pub fn connect_all(&mut self) -> Result<(), Unmade> {
        self.rooms.connect_all(self.world, &Color::SORTED, self.rng)
    }

    /// See [`Rooms::add_object`].
    pub fn add_object(
        &mut self,
        room: Place,
        kind: Option<Kind>,
        color: Option<Color>,
    ) -> Result<(Cell, Place), Unmade> {
        self.rooms.add_object(self.world, room, kind, color, self.rng)
    }

    /// See [`Rooms::add_distractors`].
    pub fn add_distractors(
        &mut self,
        room: Option<Place>,
        count: usize,
        unique: bool,
    ) -> Result<Vec<(Cell, Place)>, Unmade> {
        self.rooms.add_distractors(self.world, room, count, unique, self.rng)
    }

    /// See [`Rooms::add_door`].
    pub fn add_door(
        &mut self,
        room: Place,
        side: Option<usize>,
        color: Option<Color>,
        locked: Option<bool>,
    ) -> Result<AddedDoor, Unmade> {
        self.rooms.add_door(self.world, room, side, color, locked, self.rng)
    }

    /// Adds a locked door to a random room, and its key to another; returns the room and the color. The
    /// original compares random numbers by identity, which they do not have: the rooms may be the same.
    pub fn lock_room(&mut self) -> Result<(Place, Color), Unmade> {
        let locked = self.room()?;
        let door = self.add_door(locked, None, None, Some(true))?;
        let with_key = self.room()?;
        self.add_object(with_key, Some(Kind::Key), Some(door.color))?;
        Ok((locked, door.color))
    }

    /// Adds this many random objects to each room, column by column.
    pub fn add_distractors_to_each_room(&mut self, count: usize) -> Result<(), Unmade> {
        for column in 0..self.rooms.columns {
            for row in 0..self.rooms.rows {
                self.add_distractors(Some([column, row]), count, false)?;
            }
        }
        Ok(())
    }

    /// A random room.
    pub fn room(&mut self) -> Result<Place, Unmade> {
        Ok([self.integer(self.rooms.columns)?, self.integer(self.rooms.rows)?])
    }

    /// A random number of `0 .. count`.
    pub fn integer(&mut self, count: i32) -> Result<i32, Unmade> {
        Ok(integer(self.rng, 0, count)?)
    }

    /// Heads or tails (`_rand_bool`).
    pub fn coin(&mut self) -> Result<bool, Unmade> {
        Ok(self.integer(2)? == 0)
    }

    /// A random element.
    pub fn element<T: Copy>(&mut self, elements: &[T]) -> Result<T, Unmade> {
        Ok(element(self.rng, elements)?)
    }

    /// See [`subset`].
    pub fn subset<T: Copy>(&mut self, elements: &[T], count: usize) -> Result<Vec<T>, Unmade> {
        Ok(subset(self.rng, elements, count)?)
    }

    /// The doors, room by room along the columns; those between two rooms are there twice.
    pub fn doors(&self) -> Vec<Cell> {
        let rooms = (0..self.rooms.columns)
            .flat_map(|column| (0..self.rooms.rows).map(move |row| [column, row]));
        let sides = rooms.flat_map(|room| {
            self.rooms.number(room).map(|at| self.rooms.rooms[at].sides).unwrap_or_default()
        });
        let doors = sides.filter_map(|side| match side {
            Some(Side::Door(place)) => Some(self.world.get(place)),
            _ => None,
        });
        doors.collect()
    }

    /// Opens every door.
    pub fn open_all_doors(&mut self) {
        for at in 0..self.rooms.rooms.len() {
            for side in self.rooms.rooms[at].sides {
                if let Some(Side::Door(place)) = side {
                    let door = self.world.get(place);
                    self.world.set(place, Cell { door: Door::Open, ..door });
                }
            }
        }
    }

    /// Whether the agent could reach every object without moving one, all doors being open.
    pub fn are_objects_reachable(&self) -> bool {
        let world = &*self.world;
        let sizes = [world.width, world.height];
        let index = |[x, y]: Place| usize::try_from(y * sizes[0] + x).unwrap_or_default();
        let mut reached = vec![false; index([0, sizes[1]])];
        let mut waiting = vec![world.agent];
        while let Some(place) = waiting.pop() {
            let inside = (0..2).all(|at| (0..sizes[at]).contains(&place[at]));
            if !inside || std::mem::replace(&mut reached[index(place)], true) {
                continue;
            }
            let cell = world.get(place);
            if cell.is_empty() || cell.kind == Kind::Door {
                waiting.extend(AHEAD.map(|[x, y]| [place[0] + x, place[1] + y]));
            }
        }
        let places = (0..sizes[0]).flat_map(|x| (0..sizes[1]).map(move |y| [x, y]));
        let mut objects =
            places.filter(|&place| !matches!(world.get(place).kind, Kind::Empty | Kind::Wall));
        objects.all(|place| reached[index(place)])
    }

    /// Rejects a level with an object that is out of reach.
    pub fn require_reachable(&self) -> Result<(), Unmade> {
        if self.are_objects_reachable() {
            return Ok(());
        }
        Err(Unmade::Again("an object is out of reach".to_owned()))
    }

    /// The colors of locked doors, whose keys the instruction must leave alone.
    fn locked_colors(&self) -> Vec<Color> {
        if !self.keeps_keys {
            return Vec::new();
        }
        let locked = self.doors().into_iter().filter(|door| door.door == Door::Locked);
        locked.map(|door| door.color).collect()
    }
}

/// A level of BabyAI.
#[derive(Debug)]
pub struct BabyAi<T> {
    task: T,
    layout: Layout,
    is_limited: bool,
}

impl<T: Task> Level for BabyAi<T> {
    type Options = T::Options;
    type Progress = Option<Watch>;
    const MISSION: usize = T::MISSION;

    fn new(options: &T::Options) -> Result<(Self, Setup), Error> {
        let (task, layout) = T::new(options)?;
        for (name, number, low) in [
            ("room_size", layout.size, 3),
            ("num_cols", layout.columns, 1),
            ("num_rows", layout.rows, 1),
        ] {
            require((low..=100).contains(&number), name, &format!("from {low} to 100"), number)?;
        }
        let limit = options.common().max_steps.or(layout.max_steps);
        let rooms = [layout.columns, layout.rows];
        let setup = Setup::rooms(layout.size, rooms, limit.unwrap_or(1));
        Ok((Self { task, layout, is_limited: limit.is_some() }, setup))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Option<Watch>, Failure> {
        let Layout { size, columns, rows, .. } = self.layout;
        let mut reason = String::new();
        for _ in 0..MAX_LEVELS {
            world.clear();
            let rooms = Rooms::new(world, size, [columns, rows], rng)?;
            let mut maker = Maker { world, rooms, rng, keeps_keys: false, carried: None };
            let instruction = match self.task.make(&mut maker) {
                Ok(instruction) => instruction,
                Err(Unmade::Never(failure)) => return Err(failure),
                Err(Unmade::Again(again)) => {
                    reason = again;
                    continue;
                }
            };
            let locked = maker.locked_colors();
            let Maker { rooms, carried, .. } = maker;
            if let Some(objection) = instruction.objection(world, &rooms, &locked) {
                objection.clone_into(&mut reason);
                continue;
            }
            world.mission = instruction.words(world, &rooms);
            let watch = instruction.watch(world, &rooms);
            if !self.is_limited {
                let cells = i64::from(size).pow(2) * i64::from(columns) * i64::from(rows);
                world.max_steps = instruction.ways() * cells;
            }
            if let Some((object, place)) = carried {
                world.set(place, Cell::EMPTY);
                (world.carrying, world.seen_at) = (object, Some(place));
            }
            return Ok(Some(watch));
        }
        let last = format!("no level was found in {MAX_LEVELS} tries: {reason}");
        Err(Failure::new(last))
    }

    fn step(&self, watch: &mut Option<Watch>, step: &mut Step<'_>) -> Outcome {
        let outcome = step.act();
        let Some(watch) = watch else { return outcome };
        if step.action == Action::Drop {
            watch.look(step.world);
        }
        match watch.verify(step.world, step.action) {
            Status::Continue => outcome,
            Status::Success => Outcome::end(step.world.success()),
            Status::Failure => Outcome::end(0.0),
        }
    }
}

/// The middle room of nine, in which many tasks are.
const MIDDLE: Place = [1; 2];
