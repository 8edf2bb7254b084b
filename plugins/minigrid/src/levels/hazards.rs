//! Reach the goal past lava, walls and moving balls
//! (`envs/{crossing,distshift,lavagap,dynamicobstacles}.py`).

use cartwheel::{Error, Failure, Rng};

use super::{TO_THE_GOAL, require, require_size, require_start, start};
use crate::cell::{Cell, Color, Kind};
use crate::env::{Level, Setup, Step};
use crate::options::level_options;
use crate::world::{Action, Area, Direction, Outcome, Place, World, integer};

const PAST_LAVA: &str = "avoid the lava and get to the green goal square";
const PAST_WALLS: &str = "find the opening and get to the green goal square";

/// Lava or walls, by the name of a keyword.
fn obstacle(name: &str) -> Result<Cell, Error> {
    match name.to_lowercase().as_str() {
        "lava" => Ok(Cell::LAVA),
        "wall" => Ok(Cell::WALL),
        _ => require(false, "obstacle_type", "\"lava\" or \"wall\"", name).map(|()| Cell::LAVA),
    }
}

fn mission(obstacle: Cell) -> &'static str {
    if obstacle == Cell::LAVA { PAST_LAVA } else { PAST_WALLS }
}

level_options! {
    /// Keywords of `CrossingEnv`.
    pub struct CrossingOptions {
        /// Columns and rows of the grid, an odd number.
        size: i32 = 9,
        /// Number of rivers.
        num_crossings: usize = 1,
        /// Material of the rivers: "lava" or "wall".
        obstacle_type: String = "lava".to_owned(),
    }
}

/// Rivers across the room, each with one opening.
#[derive(Debug)]
pub struct Crossing {
    crossings: usize,
    obstacle: Cell,
}

impl Level for Crossing {
    type Options = CrossingOptions;
    type Progress = ();
    const MISSION: usize = 60;

    fn new(options: &CrossingOptions) -> Result<(Self, Setup), Error> {
        let size = options.size;
        require(size % 2 == 1 && size >= 5, "size", "an odd number from 5 on", size)?;
        let level =
            Self { crossings: options.num_crossings, obstacle: obstacle(&options.obstacle_type)? };
        Ok((level, Setup::square(size, 4 * i64::from(size).pow(2), false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        let [width, height] = [world.width, world.height];
        world.outer_walls();
        (world.agent, world.direction) = ([1; 2], Direction::RIGHT);
        world.set([width - 2, height - 2], Cell::GOAL);
        // Vertical rivers are `true`.
        let places = |length: i32| (2..length - 2).step_by(2);
        let mut rivers: Vec<(bool, i32)> = places(height).map(|at| (true, at)).collect();
        rivers.extend(places(width).map(|at| (false, at)));
        rng.shuffle(&mut rivers);
        rivers.truncate(self.crossings);
        let sorted = |vertical: bool| {
            let own = rivers.iter().filter(|(direction, _)| *direction == vertical);
            let mut places: Vec<i32> = own.map(|(_, at)| *at).collect();
            places.sort_unstable();
            places
        };
        let (columns, rows) = (sorted(true), sorted(false));
        rows.iter().for_each(|&row| world.horizontal([1, row], width - 2, self.obstacle));
        columns.iter().for_each(|&column| world.vertical([column, 1], height - 2, self.obstacle));
        // The way to the goal crosses each river once: a step to the right is `false`.
        let mut way = [vec![false; columns.len()], vec![true; rows.len()]].concat();
        rng.shuffle(&mut way);
        let limits = |rivers: Vec<i32>, last: i32| [vec![0], rivers, vec![last]].concat();
        let (columns, rows) = (limits(columns, height - 1), limits(rows, width - 1));
        let [mut column, mut row] = [0; 2];
        for down in way {
            let opening = if down {
                row += 1;
                [integer(rng, columns[column] + 1, columns[column + 1])?, rows[row]]
            } else {
                column += 1;
                [columns[column], integer(rng, rows[row] + 1, rows[row + 1])?]
            };
            world.set(opening, Cell::EMPTY);
        }
        world.mission.push_str(mission(self.obstacle));
        Ok(())
    }
}

level_options! {
    /// Keywords of `DistShiftEnv`.
    pub struct DistShiftOptions {
        /// Columns of the grid.
        width: i32 = 9,
        /// Rows of the grid.
        height: i32 = 7,
        /// Column and row at which the agent begins; `None` for a random cell and direction.
        agent_start_pos: Option<[i32; 2]> = Some([1, 1]),
        /// Direction in which it begins: 0 to 3, right, down, left, up.
        agent_start_dir: u8 = 0,
        /// The row of the second strip of lava.
        strip2_row: i32 = 2,
    }
}

/// Two strips of lava between the agent and the goal.
#[derive(Debug)]
pub struct DistShift {
    start: Option<Place>,
    direction: u8,
    strip: i32,
}

impl Level for DistShift {
    type Options = DistShiftOptions;
    type Progress = ();
    const MISSION: usize = 60;

    fn new(options: &DistShiftOptions) -> Result<(Self, Setup), Error> {
        let (&DistShiftOptions { width, height, strip2_row: strip, .. }, start) =
            (options, options.agent_start_pos);
        require_size("width", width, [4, 1000])?;
        require_size("height", height, [4, 1000])?;
        require((0..height).contains(&strip), "strip2_row", "a row of the grid", strip)?;
        require_start(start, options.agent_start_dir, [width, height])?;
        let max_steps = 4 * i64::from(width) * i64::from(height);
        let level = Self { start, direction: options.agent_start_dir, strip };
        Ok((level, Setup { width, height, max_steps, see_through_walls: true }))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        world.outer_walls();
        world.set([world.width - 2, 1], Cell::GOAL);
        for row in [1, self.strip] {
            world.horizontal([3, row], world.width - 6, Cell::LAVA);
        }
        start(world, self.start, self.direction, rng)?;
        world.mission.push_str(TO_THE_GOAL);
        Ok(())
    }
}

level_options! {
    /// Keywords of `LavaGapEnv`.
    pub struct LavaGapOptions {
        /// Columns and rows of the grid.
        size: i32 = 7,
        /// Material of the strip: "lava" or "wall".
        obstacle_type: String = "lava".to_owned(),
    }
}

/// A strip with one gap.
#[derive(Debug)]
pub struct LavaGap(Cell);

impl Level for LavaGap {
    type Options = LavaGapOptions;
    type Progress = ();
    const MISSION: usize = 60;

    fn new(options: &LavaGapOptions) -> Result<(Self, Setup), Error> {
        require_size("size", options.size, [5, 1000])?;
        let max_steps = 4 * i64::from(options.size).pow(2);
        Ok((Self(obstacle(&options.obstacle_type)?), Setup::square(options.size, max_steps, false)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<(), Failure> {
        let [width, height] = [world.width, world.height];
        world.outer_walls();
        (world.agent, world.direction) = ([1; 2], Direction::RIGHT);
        world.set([width - 2, height - 2], Cell::GOAL);
        let gap = [integer(rng, 2, width - 2)?, integer(rng, 1, height - 1)?];
        world.vertical([gap[0], 1], height - 2, self.0);
        world.set(gap, Cell::EMPTY);
        world.mission.push_str(mission(self.0));
        Ok(())
    }
}

level_options! {
    /// Keywords of `DynamicObstaclesEnv`.
    pub struct DynamicObstaclesOptions {
        /// Columns and rows of the grid.
        size: i32 = 8,
        /// Column and row at which the agent begins; `None` for a random cell and direction.
        agent_start_pos: Option<[i32; 2]> = Some([1, 1]),
        /// Direction in which it begins: 0 to 3, right, down, left, up.
        agent_start_dir: u8 = 0,
        /// Number of balls; `size // 2` of them where there are more than `size / 2 + 1`.
        n_obstacles: i32 = 4,
    }
}

/// Balls that move before the agent does. The actions are left, right and forward.
#[derive(Debug)]
pub struct DynamicObstacles {
    start: Option<Place>,
    direction: u8,
    count: i32,
}

/// Tries to place a ball.
const TRIES: Option<u32> = Some(100);

impl Level for DynamicObstacles {
    type Options = DynamicObstaclesOptions;
    /// The balls, and where they are.
    type Progress = Vec<(Cell, Place)>;
    const MISSION: usize = 40;
    const ACTIONS: i64 = 3;

    fn new(options: &DynamicObstaclesOptions) -> Result<(Self, Setup), Error> {
        let (size, count) = (options.size, options.n_obstacles);
        require_size("size", size, [4, 1000])?;
        require(count >= 0, "n_obstacles", "not negative", count)?;
        let (start, direction) = (options.agent_start_pos, options.agent_start_dir);
        require_start(start, direction, [size; 2])?;
        let count = if 2 * (count - 1) <= size { count } else { size / 2 };
        let level = Self { start, direction, count };
        Ok((level, Setup::square(size, 4 * i64::from(size).pow(2), true)))
    }

    fn generate(&self, world: &mut World, rng: &mut Rng) -> Result<Vec<(Cell, Place)>, Failure> {
        world.outer_walls();
        world.set([world.width - 2, world.height - 2], Cell::GOAL);
        start(world, self.start, self.direction, rng)?;
        let mut balls = Vec::new();
        for _ in 0..self.count {
            let ball = world.object(Kind::Ball, Color::Blue);
            let place = world.place(ball, world.everywhere(), TRIES, rng, |_, _| false)?;
            balls.push((ball, place));
        }
        world.mission.push_str(TO_THE_GOAL);
        Ok(balls)
    }

    fn step(&self, balls: &mut Vec<(Cell, Place)>, step: &mut Step<'_>) -> Outcome {
        let Step { world, rng, .. } = step;
        let is_blocked = !matches!(world.get(world.front()).kind, Kind::Empty | Kind::Goal);
        for (ball, place) in balls {
            let around = Area { top: place.map(|at| at - 1), size: [3; 2] };
            // A ball without a free cell around it stays.
            if let Ok(next) = world.place(*ball, around, TRIES, rng, |_, _| false) {
                world.set(*place, Cell::EMPTY);
                *place = next;
            }
        }
        let outcome = step.act();
        if step.action == Action::Forward && is_blocked { Outcome::end(-1.0) } else { outcome }
    }
}
