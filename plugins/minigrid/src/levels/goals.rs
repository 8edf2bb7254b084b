//! Reach the green goal: empty rooms, four rooms, a locked door, a row of rooms
//! (`envs/{empty,fourrooms,doorkey,multiroom,lockedroom}.py`).

use cartwheel::{Error, Failure, Rng};

use super::{TO_THE_GOAL, other_number, require, require_size, require_start, start};
use crate::cell::{Cell, Color, Door, Kind};
use crate::env::{Level, Setup};
use crate::options::level_options;
use crate::world::{Area, MAX_TRIES, Place, World, element, integer, subset};

level_options! {
    /// Keywords of `EmptyEnv`.
    pub struct EmptyOptions {
        /// Columns and rows of the grid.
        size: i32 = 8,
        /// Column and row at which the agent begins; `None` for a random cell and direction.
        agent_start_pos: Option<[i32; 2]> = Some([1, 1]),
        /// Direction in which it begins: 0 to 3, right, down, left, up.
        agent_start_dir: u8 = 0,
    }
}

/// An empty room, whose goal is in the last corner.
#[derive(Debug)]
pub struct Empty {
    start: Option<Place>,
    direction: u8,
}

impl Level for Empty {
    type Options = EmptyOptions;
    type Progress = ();
    const MISSION: usize = 40;

    fn new(options: &EmptyOptions) -> Result<(Self, Setup), Error> {
        let size = options.size;
        require_size("size", size, [4, 1000])?;
        let (start, direction) = (options.agent_start_pos, options.agent_start_dir);
        require_start(start, direction, [size; 2])?;
        Ok((Self { start, direction }, Setup::square(size, 4 * i64::from(size).pow(2), true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        world.outer_walls();
        world.set([world.width - 2, world.height - 2], Cell::GOAL);
        start(world, self.start, self.direction, rng)?;
        world.mission.push_str(TO_THE_GOAL);
        Ok(())
    }
}

level_options! {
    /// Keywords of `FourRoomsEnv`.
    pub struct FourRoomsOptions {
        /// Column and row at which the agent begins; `None` for a random cell.
        agent_pos: Option<[i32; 2]>,
        /// Column and row of the goal; `None` for a random cell.
        goal_pos: Option<[i32; 2]>,
    }
}

/// Four rooms with openings between them.
#[derive(Debug)]
pub struct FourRooms {
    agent: Option<Place>,
    goal: Option<Place>,
}

impl Level for FourRooms {
    type Options = FourRoomsOptions;
    type Progress = ();
    const MISSION: usize = 40;

    fn new(options: &FourRoomsOptions) -> Result<(Self, Setup), Error> {
        let inside = |place: Option<Place>| {
            place.is_none_or(|place| place.iter().all(|at| (1..18).contains(at)))
        };
        let (agent, goal) = (options.agent_pos, options.goal_pos);
        require(inside(agent), "agent_pos", "a cell within the walls, or None", agent)?;
        require(inside(goal), "goal_pos", "a cell within the walls, or None", goal)?;
        Ok((Self { agent, goal }, Setup::square(19, 100, false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        world.outer_walls();
        let [wide, high] = [world.width / 2, world.height / 2];
        for row in 0..2 {
            for column in 0..2 {
                let [left, up] = [column * wide, row * high];
                let [right, down] = [left + wide, up + high];
                if column == 0 {
                    world.vertical([right, up], high, Cell::WALL);
                    let opening = [right, integer(rng, up + 1, down)?];
                    world.set(opening, Cell::EMPTY);
                }
                if row == 0 {
                    world.horizontal([left, down], wide, Cell::WALL);
                    let opening = [integer(rng, left + 1, right)?, down];
                    world.set(opening, Cell::EMPTY);
                }
            }
        }
        match self.agent {
            Some(agent) => {
                world.agent = agent;
                world.set(agent, Cell::EMPTY);
                world.direction = crate::world::direction(rng)?;
            }
            None => world.place_agent(world.everywhere(), None, rng)?,
        }
        match self.goal {
            Some(goal) => world.set(goal, Cell::GOAL),
            None => world.place_anywhere(Cell::GOAL, rng).map(drop)?,
        }
        world.mission.push_str("reach the goal");
        Ok(())
    }
}

level_options! {
    /// Keywords of `DoorKeyEnv`.
    pub struct DoorKeyOptions {
        /// Columns and rows of the grid.
        size: i32 = 8,
    }
}

/// A locked door on the way to the goal, and its key.
#[derive(Debug)]
pub struct DoorKey;

impl Level for DoorKey {
    type Options = DoorKeyOptions;
    type Progress = ();
    const MISSION: usize = 60;

    fn new(options: &DoorKeyOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [5, 1000])?;
        let max_steps = 10 * i64::from(options.size).pow(2);
        Ok((Self, Setup::square(options.size, max_steps, false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        let [width, height] = [world.width, world.height];
        world.outer_walls();
        world.set([width - 2, height - 2], Cell::GOAL);
        let wall = integer(rng, 2, width - 2)?;
        world.vertical([wall, 0], height, Cell::WALL);
        let left = Area { top: [0; 2], size: [wall, height] };
        world.place_agent(left, None, rng)?;
        let door = integer(rng, 1, height - 2)?;
        world.set([wall, door], Cell::door(Color::Yellow, Door::Locked));
        let key = world.object(Kind::Key, Color::Yellow);
        world.place(key, left, None, rng, |_, _| false)?;
        world.mission.push_str("use the key to open the door and then get to the goal");
        Ok(())
    }
}

level_options! {
    /// Keywords of `MultiRoomEnv`.
    pub struct MultiRoomOptions {
        /// The fewest rooms.
        minNumRooms: i32 = 2,
        /// The most rooms.
        maxNumRooms: i32 = 2,
        /// The most columns and rows of a room, walls included.
        maxRoomSize: i32 = 10,
        /// Columns of the grid.
        width: i32 = 25,
        /// Rows of the grid.
        height: i32 = 25,
    }
}

/// A row of rooms with doors between them.
#[derive(Debug)]
pub struct MultiRoom {
    fewest: i32,
    most: i32,
    largest: i32,
}

/// A room of [`MultiRoom`], and the door by which one enters it.
#[derive(Debug, Clone, Copy)]
struct Chamber {
    top: Place,
    size: Place,
    entry: Place,
}

impl MultiRoom {
    /// Adds a room at a door, and `left - 1` others behind it (`_placeRoom`): whether there was space for
    /// the first. `wall` is the side of the room that has the door.
    fn add(
        &self,
        [width, height]: Place,
        left: i32,
        rooms: &mut Vec<Chamber>,
        wall: i32,
        entry: Place,
        rng: &mut Rng,
    ) -> Result<bool, Failure> {
        let size = [integer(rng, 4, self.largest + 1)?, integer(rng, 4, self.largest + 1)?];
        let [x, y] = entry;
        let top = if rooms.is_empty() {
            entry
        } else {
            match wall {
                0 => [x - size[0] + 1, integer(rng, y - size[1] + 2, y)?],
                1 => [integer(rng, x - size[0] + 2, x)?, y - size[1] + 1],
                2 => [x, integer(rng, y - size[1] + 2, y)?],
                _ => [integer(rng, x - size[0] + 2, x)?, y],
            }
        };
        if top[0] < 0 || top[1] < 0 || top[0] + size[0] > width || top[1] + size[1] >= height {
            return Ok(false);
        }
        let others = &rooms[..rooms.len().saturating_sub(1)];
        let overlaps = |other: &Chamber| {
            (0..2).all(|at| {
                top[at] + size[at] >= other.top[at] && other.top[at] + other.size[at] > top[at]
            })
        };
        if others.iter().any(overlaps) {
            return Ok(false);
        }
        rooms.push(Chamber { top, size, entry });
        if left == 1 {
            return Ok(true);
        }
        for _ in 0..8 {
            let walls: Vec<i32> = (0..4).filter(|&side| side != wall).collect();
            let exit_wall = element(rng, &walls)?;
            let exit = match exit_wall {
                0 => [top[0] + size[0] - 1, top[1] + integer(rng, 1, size[1] - 1)?],
                1 => [top[0] + integer(rng, 1, size[0] - 1)?, top[1] + size[1] - 1],
                2 => [top[0], top[1] + integer(rng, 1, size[1] - 1)?],
                _ => [top[0] + integer(rng, 1, size[0] - 1)?, top[1]],
            };
            let next = (exit_wall + 2) % 4;
            if self.add([width, height], left - 1, rooms, next, exit, rng)? {
                break;
            }
        }
        Ok(true)
    }
}

impl Level for MultiRoom {
    type Options = MultiRoomOptions;
    type Progress = ();
    const MISSION: usize = 40;

    fn new(options: &MultiRoomOptions) -> Result<(Self, Setup), Error> {
        let [fewest, most, largest] =
            [options.minNumRooms, options.maxNumRooms, options.maxRoomSize];
        require(fewest > 0, "minNumRooms", "positive", fewest)?;
        require((fewest..=64).contains(&most), "maxNumRooms", "from `minNumRooms` to 64", most)?;
        require_size("maxRoomSize", largest, [4, 1000])?;
        let setup = Setup {
            width: options.width,
            height: options.height,
            max_steps: i64::from(most) * 20,
            see_through_walls: false,
        };
        Ok((Self { fewest, most, largest }, setup))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        let sizes = [world.width, world.height];
        let count = integer(rng, self.fewest, self.most + 1)?;
        let wanted = usize::try_from(count)?;
        let mut rooms = Vec::new();
        for _ in 0..MAX_TRIES {
            let mut tried = Vec::new();
            let entry = [integer(rng, 0, sizes[0] - 2)?, integer(rng, 0, sizes[0] - 2)?];
            self.add(sizes, count, &mut tried, 2, entry, rng)?;
            if tried.len() > rooms.len() {
                rooms = tried;
            }
            if rooms.len() >= wanted {
                break;
            }
        }
        let (Some(first), Some(last)) = (rooms.first().copied(), rooms.last().copied()) else {
            return Err(Failure::new("no room was found for the grid"));
        };
        if rooms.len() < wanted {
            let found = rooms.len();
            return Err(Failure::new(format!("only {found} of {wanted} rooms were found")));
        }
        let mut before = None;
        for (number, room) in rooms.iter().enumerate() {
            world.walls(room.top, room.size);
            if number > 0 {
                let colors: Vec<Color> =
                    Color::SORTED.into_iter().filter(|color| Some(*color) != before).collect();
                let color = element(rng, &colors)?;
                world.set(room.entry, Cell::door(color, Door::Closed));
                before = Some(color);
            }
        }
        world.place_agent(Area { top: first.top, size: first.size }, None, rng)?;
        let area = Area { top: last.top, size: last.size };
        world.place(Cell::GOAL, area, None, rng, |_, _| false)?;
        world.mission.push_str("traverse the rooms to get to the goal");
        Ok(())
    }
}

level_options! {
    /// Keywords of `LockedRoomEnv`.
    pub struct LockedRoomOptions {
        /// Columns and rows of the grid.
        size: i32 = 19,
    }
}

/// Six rooms along a corridor: the goal is in a locked one, and the key in another.
#[derive(Debug)]
pub struct LockedRoom;

impl Level for LockedRoom {
    type Options = LockedRoomOptions;
    type Progress = ();

    fn new(options: &LockedRoomOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [13, 1000])?;
        let max_steps = 10 * i64::from(options.size);
        Ok((Self, Setup::square(options.size, max_steps, false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        let [width, height] = [world.width, world.height];
        world.outer_walls();
        let [left, right] = [width / 2 - 2, width / 2 + 2];
        world.vertical([left, 0], height, Cell::WALL);
        world.vertical([right, 0], height, Cell::WALL);
        let size = [left + 1, height / 3 + 1];
        let mut rooms = Vec::new();
        for number in 0..3 {
            let up = number * (height / 3);
            world.horizontal([0, up], left, Cell::WALL);
            world.horizontal([right, up], width - right, Cell::WALL);
            rooms.push(([0, up], [left, up + 3]));
            rooms.push(([right, up], [right, up + 3]));
        }
        let inside = |rng: &mut Rng, [x, y]: Place| -> Result<Place, Failure> {
            Ok([integer(rng, x + 1, x + size[0] - 1)?, integer(rng, y + 1, y + size[1] - 1)?])
        };
        let locked = usize::try_from(integer(rng, 0, 6)?)?;
        let goal = inside(rng, rooms[locked].0)?;
        world.set(goal, Cell::GOAL);
        let colors = subset(rng, &Color::SORTED, rooms.len())?;
        for (number, (_, door)) in rooms.iter().enumerate() {
            let state = if number == locked { Door::Locked } else { Door::Closed };
            world.set(*door, Cell::door(colors[number], state));
        }
        let with_key = other_number(rng, 6, locked)?;
        let place = inside(rng, rooms[with_key].0)?;
        let key = world.object(Kind::Key, colors[locked]);
        world.set(place, key);
        let area = Area { top: [left, 0], size: [right - left, height] };
        world.place_agent(area, None, rng)?;
        let [door, room] = [colors[locked], colors[with_key]].map(Color::name);
        world.mission = format!(
            "get the {door} key from the {room} room, unlock the {door} door and go to the goal"
        );
        Ok(())
    }
}
