//! A maze as a plugin: find the exit of a random maze, on its map.
//!
//! ```text
//! cargo build --release -p cartwheel --example maze --features python
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, Flat, Frame, RenderMode, Rng, Shared, Space, Spaces, Transition,
};

cartwheel::options! {
    /// Keywords.
    struct Options {
        /// Cells on each side, with the walls around.
        size: usize = 8,
        /// Fraction of walls.
        walls: f64 = 0.2,
    }
}

cartwheel::options! {
    /// Where an episode begins: `reset(options={"start": [1, 2]})`.
    struct Start {
        /// Row and column.
        start: Option<[usize; 2]>,
    }
}

/// The walls around every maze, made once.
struct Plan {
    size: usize,
    border: Vec<u8>,
}

impl Shared<Options> for Plan {
    fn prepare(&Options { size, walls }: &Options) -> Result<Self, Error> {
        if !(4..=256).contains(&size) || !(0.0..1.0).contains(&walls) {
            return Err(Error::bad_options(format!("size is {size}, walls are {walls}")));
        }
        let at_border =
            |at: usize| [at / size, at % size].iter().any(|n| [0, size - 1].contains(n));
        Ok(Self { size, border: (0..size * size).map(|at| at_border(at).into()).collect() })
    }
}

cartwheel::view! {
    /// The walker's observation: the keys of a `Dict`.
    struct View, ViewMut, ViewRef {
        /// 1 for a wall, 2 for the exit, row by row.
        map: Flat<u8>,
        /// Row and column.
        position: [i64; 2],
        /// Whether the last move was against a wall.
        stuck: bool,
    }
}

cartwheel::info! {
    /// The infos of a step or reset.
    struct Distance {
        /// Rows and columns to the exit.
        distance: u32,
        /// The walker's position.
        path: Vec<u16>,
    }
}

struct Maze {
    plan: Arc<Plan>,
    walls: f64,
    cells: Vec<u8>,
    position: [i64; 2],
    stuck: bool,
    path: Vec<u16>,
}

impl Maze {
    fn at(&self, [row, column]: [i64; 2]) -> usize {
        usize::try_from(row).unwrap_or(0) * self.plan.size + usize::try_from(column).unwrap_or(0)
    }
}

impl Env for Maze {
    type Options = Options;
    type ResetOptions = Start;
    type Action = [i64; 2]; // −1, 0 or 1 rows, and columns
    type Observation = View;
    type Info = Distance;
    type Shared = Plan;

    fn spaces(options: &Options, _: &Plan) -> Spaces {
        let (size, max) = (options.size, i128::try_from(options.size).unwrap_or(0) - 1);
        Spaces {
            observation: Space::dict([
                ("map", Space::integer_box(DType::U8, &[size, size], 0, 2)),
                ("position", Space::integer_box(DType::I64, &[2], 0, max)),
                ("stuck", Space::integer_box(DType::Bool, &[], 0, 1)),
            ]),
            action: Space::MultiDiscrete {
                shape: vec![2],
                counts: vec![3; 2],
                starts: vec![-1; 2],
            },
        }
    }

    fn new(options: &Options, plan: &Arc<Plan>) -> Result<Self, Error> {
        let (plan, cells) = (Arc::clone(plan), plan.border.clone());
        let (walls, position) = (options.walls, [1, 1]);
        Ok(Self { plan, walls, cells, position, stuck: false, path: Vec::new() })
    }

    fn reset(&mut self, rng: &mut Rng, options: &Start) -> Result<(), Failure> {
        let size = self.plan.size;
        let [row, column] = options.start.unwrap_or([1, 1]);
        let inside = 1..size - 1;
        if !inside.contains(&row) || !inside.contains(&column) {
            return Err(Failure::new(format!("[{row}, {column}] is not inside the maze")));
        }
        self.position = [i64::try_from(row)?, i64::try_from(column)?];
        self.cells.clone_from(&self.plan.border);
        self.cells.iter_mut().for_each(|cell| *cell |= u8::from(rng.random() < self.walls));
        self.cells[row * size + column] = 0;
        self.cells[size * (size - 1) - 2] = 2;
        (self.stuck, self.path) = (false, Vec::new());
        Ok(())
    }

    fn step(&mut self, action: &[i64; 2], _: &mut Rng) -> Result<Transition, Failure> {
        let next = [self.position[0] + action[0], self.position[1] + action[1]];
        self.stuck = self.cells[self.at(next)] == 1;
        if !self.stuck {
            self.position = next;
        }
        self.path.push(u16::try_from(self.at(self.position))?);
        let terminated = self.cells[self.at(self.position)] == 2;
        let reward = if terminated { 1.0 } else { -0.01 };
        Ok(Transition { reward, terminated, truncated: false })
    }

    fn observe(&self, observation: ViewMut<'_>) {
        observation.map.copy_from_slice(&self.cells);
        *observation.position = self.position;
        *observation.stuck = self.stuck;
    }

    fn info(&self) -> Distance {
        let exit = i64::try_from(self.plan.size).unwrap_or(0) - 2;
        let distance = self.position.iter().map(|at| at.abs_diff(exit)).sum::<u64>();
        Distance { distance: u32::try_from(distance).unwrap_or(0), path: self.path.clone() }
    }

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray, RenderMode::Ansi];

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        let (size, here) = (self.plan.size, self.at(self.position));
        if frame.mode() == RenderMode::Ansi {
            let cell = |at: usize| {
                if at == here { '@' } else { [' ', '#', 'E'][usize::from(self.cells[at])] }
            };
            for row in 0..size {
                frame.text().extend((row * size..(row + 1) * size).map(cell).chain(['\n']));
            }
            return Ok(());
        }
        let pixels = frame.pixels(size, size);
        for (pixel, cell) in pixels.iter_mut().zip(&self.cells) {
            *pixel = [[255, 255, 255], [40, 40, 40], [0, 160, 0]][usize::from(*cell)];
        }
        pixels[here] = [200, 0, 0];
        Ok(())
    }

    cartwheel::state! { walls, cells, position, stuck, path }
    cartwheel::parameters! { walls: walls, position: position }
}

cartwheel::plugin! { _maze {
    "maze/Maze-v0" => Maze { max_episode_steps: 200 },
    "maze/Hall-v0" => Maze { max_episode_steps: 50, default_options: r#"{"walls": 0.0}"# },
} }
