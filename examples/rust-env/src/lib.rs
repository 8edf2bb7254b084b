//! Mazes for reinforcement learning: find the exit, which is in the last room.

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, Flat, Frame, Parameter, RenderMode, Rng, Space, Spaces, Transition, wrong,
};

cartwheel::options! {
    /// Keywords of `make_vec`.
    pub struct Options {
        /// Cells along a side, an odd number: rooms have odd rows and columns, with walls between.
        size: usize = 9,
    }
}

cartwheel::options! {
    /// The dictionary `options` of `reset`.
    pub struct ResetOptions {
        /// Row and column to begin at; without it, a random room, not of the last row or column.
        start: Option<[usize; 2]>,
    }
}

cartwheel::view! {
    /// An observation: a dictionary with these keys.
    pub struct Sight, SightMut, SightRef {
        /// Row and column.
        player: [i64; 2],
        /// 1 where there is a wall.
        walls: Flat<i8>,
    }
}

cartwheel::info! {
    /// An info: a dictionary with these keys.
    pub struct Report {
        /// Rows and columns between the player and the exit.
        distance: i64,
    }
}

/// One maze. A cell is a place in `walls`, which are stored row by row.
pub struct Maze {
    size: usize,
    /// Probability that a move fails: `envs.set_attr("slip", 0.1)` changes it.
    slip: f64,
    walls: Vec<i8>,
    player: usize,
}

impl Maze {
    fn exit(&self) -> usize {
        self.walls.len() - self.size - 2
    }

    /// Opens every room, and a door to the north or to the west of every room but the first.
    fn dig(&mut self, rng: &mut Rng) {
        self.walls.fill(1);
        for row in (1..self.size).step_by(2) {
            for column in (1..self.size).step_by(2) {
                let room = row * self.size + column;
                let west = row == 1 || column > 1 && rng.random() < 0.5;
                self.walls[room] = 0;
                self.walls[room - if west { 1 } else { self.size }] = i8::from(row + column == 2);
            }
        }
    }
}

impl Env for Maze {
    type Options = Options;
    type ResetOptions = ResetOptions;
    type Shared = ();
    type Action = [i64; 2];
    type Observation = Sight;
    type Info = Report;

    fn spaces(options: &Options, (): &()) -> Spaces {
        let place = Space::integer_box(cartwheel::DType::I64, &[2], 1, options.size as i128 - 2);
        let walls = Space::MultiBinary(vec![options.size; 2]);
        let observation = Space::dict([("player", place), ("walls", walls)]);
        Spaces { observation, action: Space::multi_discrete(&[3, 3]) }
    }

    fn new(&Options { size }: &Options, _: &Arc<()>) -> Result<Self, Error> {
        if size % 2 == 1 && (5..100).contains(&size) {
            return Ok(Self { size, slip: 0.0, walls: vec![1; size * size], player: size + 1 });
        }
        Err(Error::bad_options(format!("`size` must be an odd number from 5 to 99, got {size}")))
    }

    fn reset(&mut self, rng: &mut Rng, options: &ResetOptions) -> Result<(), Failure> {
        self.dig(rng);
        let room = [0; 2].map(|_| 2 * rng.integers(1..self.size as u64 / 2) as usize - 1);
        let [row, column] = options.start.unwrap_or(room);
        if row.max(column) >= self.size || self.walls[row * self.size + column] == 1 {
            return Err(Failure::new(format!("`start` is not a free cell: [{row}, {column}]")));
        }
        self.player = row * self.size + column;
        Ok(())
    }

    /// Goes down and then right by the two numbers, less 1: by -1, 0 or 1.
    fn step(&mut self, action: &[i64; 2], rng: &mut Rng) -> Result<Transition, Failure> {
        for (way, stride) in action.iter().zip([self.size as i64, 1]) {
            let next = (self.player as i64 + (way - 1) * stride) as usize;
            if self.walls[next] == 0 && rng.random() >= self.slip {
                self.player = next;
            }
        }
        let terminated = self.player == self.exit();
        let reward = if terminated { 1.0 } else { -0.01 };
        Ok(Transition { reward, terminated, truncated: false })
    }

    fn observe(&self, sight: SightMut<'_>) {
        *sight.player = [self.player / self.size, self.player % self.size].map(|at| at as i64);
        sight.walls.copy_from_slice(&self.walls);
    }

    fn info(&self) -> Report {
        let between = self.exit() - self.player; // no row and no column is after the exit's
        Report { distance: (between / self.size + between % self.size) as i64 }
    }

    const RENDER: &'static [RenderMode] = &[RenderMode::RgbArray, RenderMode::Ansi];
    const RENDER_FPS: u32 = 8;

    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        frame.grid((self.size, self.size), 16, |cell| match self.walls[cell] {
            _ if cell == self.player => ('@', [220, 60, 40]),
            _ if cell == self.exit() => ('X', [40, 160, 80]),
            0 => (' ', [255; 3]),
            _ => ('#', [40; 3]),
        });
        Ok(())
    }

    cartwheel::parameters! { slip: slip }
    cartwheel::state! { slip, walls, player }

    fn check_parameter(&self, name: &str) -> Result<(), Error> {
        if name == "slip" && !(0.0..=1.0).contains(&self.slip) {
            return Err(wrong("a probability from 0 to 1", &Parameter::get(&self.slip)));
        }
        Ok(())
    }
}

cartwheel::plugin! { _my_game {
    "my_game/Maze-v0" => Maze { max_episode_steps: 200 },
} }
