//! The world of an episode: the grid, the agent, and what its actions do (`minigrid/minigrid_env.py`,
//! `core/grid.py`).

use cartwheel::{Error, Failure, Parameter, ParameterValue, Rng, State, wrong};

use crate::cell::{Cell, Color, Door, Kind};

/// A column and a row of the grid, or a difference of them.
pub type Place = [i32; 2];

/// The step to the cell in front, for each direction: right, down, left, up (`DIR_TO_VEC`).
pub const AHEAD: [Place; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/// Where the agent looks: 0 to 3, right, down, left, up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Direction(u8);

impl Direction {
    /// To the right.
    pub const RIGHT: Self = Self(0);
    /// Up, as in the agent's own view.
    pub const UP: Self = Self(3);

    /// The direction with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        (number < 4).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The step to the cell in front.
    pub fn ahead(self) -> Place {
        AHEAD[usize::from(self.0)]
    }

    /// After so many turns to the right.
    fn turned(self, turns: u8) -> Self {
        Self((self.0 + turns) % 4)
    }
}

impl State for Direction {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let number = u8::load(state)?;
        Self::from_number(number)
            .ok_or_else(|| Failure::new(format!("a direction of the state is {number}")))
    }
}

impl Parameter for Direction {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let number = match value {
            ParameterValue::Int(number) => u8::try_from(number).ok(),
            _ => None,
        };
        *self = number
            .and_then(Self::from_number)
            .ok_or_else(|| wrong("an integer from 0 to 3: right, down, left, up", &value))?;
        Ok(())
    }
}

/// Tries of what the original repeats forever.
pub const MAX_TRIES: u32 = 1_000_000;

/// An action of the agent (`core/actions.py`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Left,
    Right,
    Forward,
    Pickup,
    Drop,
    Toggle,
    Done,
}

impl Action {
    /// The action with this number.
    pub fn from_number(number: i64) -> Result<Self, Failure> {
        Ok(match number {
            0 => Self::Left,
            1 => Self::Right,
            2 => Self::Forward,
            3 => Self::Pickup,
            4 => Self::Drop,
            5 => Self::Toggle,
            6 => Self::Done,
            _ => return Err(Failure::new(format!("an action must be from 0 to 6, got {number}"))),
        })
    }
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub reward: f64,
    pub terminated: bool,
}

impl Outcome {
    /// The episode goes on.
    pub const NOTHING: Self = Self { reward: 0.0, terminated: false };

    /// The episode ends with this reward.
    pub const fn end(reward: f64) -> Self {
        Self { reward, terminated: true }
    }
}

/// The reason why a level was not made.
#[derive(Debug)]
pub enum Unmade {
    /// The tries of the original are over, or the level is not wanted: BabyAI makes another one.
    Again(String),
    /// No other try can succeed.
    Never(Failure),
}

impl From<Failure> for Unmade {
    fn from(failure: Failure) -> Self {
        Self::Never(failure)
    }
}

impl From<std::num::TryFromIntError> for Unmade {
    fn from(error: std::num::TryFromIntError) -> Self {
        Self::Never(error.into())
    }
}

impl From<Unmade> for Failure {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Again(reason) => Self::new(reason),
            Unmade::Never(failure) => failure,
        }
    }
}

/// The grid and the agent.
#[derive(Debug)]
pub struct World {
    pub width: i32,
    pub height: i32,
    /// Row by row.
    cells: Vec<Cell>,
    /// For each object with a number: what is in it.
    contents: Vec<Cell>,
    pub agent: Place,
    pub direction: Direction,
    /// The object that the agent carries; `Cell::EMPTY` for nothing.
    pub carrying: Cell,
    pub mission: String,
    pub steps: i64,
    pub max_steps: i64,
    /// Where the agent still sees what it carries: an observation that is older than the state.
    pub seen_at: Option<Place>,
}

cartwheel::state! { impl State for World {
    width, height, cells, contents, agent, direction, carrying, mission, steps, max_steps, seen_at
} }

/// Where `World::place` may put an object: the top left corner of a rectangle and its size, or
/// anywhere.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub top: Place,
    pub size: Place,
}

impl World {
    /// A world without walls, of an episode that has not begun.
    pub fn new(width: i32, height: i32, max_steps: i64) -> Self {
        let cells = usize::try_from(width * height).unwrap_or_default();
        Self {
            width,
            height,
            cells: vec![Cell::EMPTY; cells],
            contents: Vec::new(),
            agent: [0; 2],
            direction: Direction::RIGHT,
            carrying: Cell::EMPTY,
            mission: String::new(),
            steps: 0,
            max_steps,
            seen_at: None,
        }
    }

    /// Clears everything, before a level is made.
    pub fn clear(&mut self) {
        self.cells.fill(Cell::EMPTY);
        self.contents.clear();
        self.agent = [-1; 2];
        self.carrying = Cell::EMPTY;
        self.mission.clear();
        self.steps = 0;
        self.seen_at = None;
    }

    /// An object with a number of its own.
    pub fn object(&mut self, kind: Kind, color: Color) -> Cell {
        self.contents.push(Cell::EMPTY);
        let id = u16::try_from(self.contents.len()).unwrap_or(u16::MAX);
        Cell { id, ..Cell::new(kind, color) }
    }

    /// A box of this color with an object in it.
    pub fn box_with(&mut self, color: Color, object: Cell) -> Cell {
        let made = self.object(Kind::Box, color);
        if let Some(contents) = self.contents.last_mut() {
            *contents = object;
        }
        made
    }

    /// Where the cell is in `cells`; `None` outside of the grid.
    fn index(&self, [x, y]: Place) -> Option<usize> {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        inside.then(|| usize::try_from(y * self.width + x).ok()).flatten()
    }

    /// The cell; a wall outside of the grid, as an agent sees it.
    pub fn get(&self, place: Place) -> Cell {
        self.index(place).map_or(Cell::WALL, |at| self.cells[at])
    }

    /// Replaces a cell; nothing outside of the grid.
    pub fn set(&mut self, place: Place, cell: Cell) {
        if let Some(at) = self.index(place) {
            self.cells[at] = cell;
        }
    }

    /// A row of cells.
    pub fn horizontal(&mut self, [x, y]: Place, length: i32, cell: Cell) {
        (0..length).for_each(|at| self.set([x + at, y], cell));
    }

    /// A column of cells.
    pub fn vertical(&mut self, [x, y]: Place, length: i32, cell: Cell) {
        (0..length).for_each(|at| self.set([x, y + at], cell));
    }

    /// Walls around a rectangle.
    pub fn walls(&mut self, [x, y]: Place, [width, height]: Place) {
        self.horizontal([x, y], width, Cell::WALL);
        self.horizontal([x, y + height - 1], width, Cell::WALL);
        self.vertical([x, y], height, Cell::WALL);
        self.vertical([x + width - 1, y], height, Cell::WALL);
    }

    /// Walls around the grid.
    pub fn outer_walls(&mut self) {
        self.walls([0; 2], [self.width, self.height]);
    }

    /// The whole grid.
    pub fn everywhere(&self) -> Area {
        Area { top: [0; 2], size: [self.width, self.height] }
    }

    /// Puts an object on a random free cell of an area where `reject` does not refuse it; returns the
    /// place. `tries` are those of the original, `None` where it has no limit.
    ///
    /// # Errors
    ///
    /// There is no such cell, or the tries are over.
    pub fn place(
        &mut self,
        object: Cell,
        Area { top, size }: Area,
        tries: Option<u32>,
        rng: &mut Rng,
        reject: impl Fn(&Self, Place) -> bool,
    ) -> Result<Place, Unmade> {
        let [left, up] = top.map(|at| at.max(0));
        let ends = [(left + size[0]).min(self.width), (up + size[1]).min(self.height)];
        for _ in 0..=tries.unwrap_or(MAX_TRIES) {
            let place = [integer(rng, left, ends[0])?, integer(rng, up, ends[1])?];
            if self.get(place).is_empty() && place != self.agent && !reject(self, place) {
                self.set(place, object);
                return Ok(place);
            }
        }
        let reason = format!(
            "no free cell was found for a {} in columns {left} to {} and rows {up} to {}",
            object.kind.name(),
            ends[0] - 1,
            ends[1] - 1
        );
        Err(match tries {
            Some(_) => Unmade::Again(reason),
            None => Unmade::Never(Failure::new(reason)),
        })
    }

    /// [`World::place`] anywhere in the grid.
    pub fn place_anywhere(&mut self, object: Cell, rng: &mut Rng) -> Result<Place, Unmade> {
        self.place(object, self.everywhere(), None, rng, |_, _| false)
    }

    /// Puts the agent on a random free cell of an area, in a random direction.
    pub fn place_agent(
        &mut self,
        area: Area,
        tries: Option<u32>,
        rng: &mut Rng,
    ) -> Result<(), Unmade> {
        self.agent = [-1; 2];
        self.agent = self.place(Cell::EMPTY, area, tries, rng, |_, _| false)?;
        self.direction = direction(rng)?;
        Ok(())
    }

    /// The cell in front of the agent.
    pub fn front(&self) -> Place {
        let [x, y] = self.direction.ahead();
        [self.agent[0] + x, self.agent[1] + y]
    }

    /// The reward of success: `1 - 0.9 * steps / max_steps`.
    #[expect(clippy::cast_precision_loss, reason = "as Python divides integers")]
    pub fn success(&self) -> f64 {
        1.0 - 0.9 * (self.steps as f64 / self.max_steps as f64)
    }

    /// Does an action: goals and lava end the episode.
    pub fn act(&mut self, action: Action) -> Outcome {
        self.steps += 1;
        self.seen_at = None;
        let front = self.front();
        let cell = self.get(front);
        match action {
            Action::Left => self.direction = self.direction.turned(3),
            Action::Right => self.direction = self.direction.turned(1),
            Action::Forward => {
                if cell.can_overlap() {
                    self.agent = front;
                }
                match cell.kind {
                    Kind::Goal => return Outcome::end(self.success()),
                    Kind::Lava => return Outcome::end(0.0),
                    _ => {}
                }
            }
            Action::Pickup => {
                if cell.can_pickup() && self.carrying.is_empty() {
                    self.carrying = cell;
                    self.set(front, Cell::EMPTY);
                }
            }
            Action::Drop => {
                if cell.is_empty() && !self.carrying.is_empty() {
                    self.set(front, self.carrying);
                    self.carrying = Cell::EMPTY;
                }
            }
            Action::Toggle => self.toggle(front, cell),
            Action::Done => {}
        }
        Outcome::NOTHING
    }

    /// Opens and closes doors, opens boxes.
    fn toggle(&mut self, place: Place, cell: Cell) {
        match (cell.kind, cell.door) {
            (Kind::Door, Door::Locked) => {
                let key = Cell { id: self.carrying.id, ..Cell::new(Kind::Key, cell.color) };
                if self.carrying == key {
                    self.set(place, Cell { door: Door::Open, ..cell });
                }
            }
            (Kind::Door, Door::Closed) => self.set(place, Cell { door: Door::Open, ..cell }),
            (Kind::Door, Door::Open) => self.set(place, Cell { door: Door::Closed, ..cell }),
            (Kind::Box, _) => {
                let contents = usize::from(cell.id).checked_sub(1).map(|at| self.contents[at]);
                self.set(place, contents.unwrap_or(Cell::EMPTY));
            }
            _ => {}
        }
    }
}

/// A random integer of `low .. high` (`_rand_int`).
///
/// # Errors
///
/// There is none.
pub fn integer(rng: &mut Rng, low: i32, high: i32) -> Result<i32, Failure> {
    if low >= high {
        return Err(Failure::new(format!("there is no integer from {low} to {}", high - 1)));
    }
    Ok(i32::try_from(rng.integers(i64::from(low)..i64::from(high)))?)
}

/// A random element (`_rand_elem`).
///
/// # Errors
///
/// There is none.
pub fn element<T: Copy>(rng: &mut Rng, elements: &[T]) -> Result<T, Failure> {
    let at = integer(rng, 0, i32::try_from(elements.len())?)?;
    Ok(elements[usize::try_from(at)?])
}

/// Some of the elements in a random order (`_rand_subset`).
///
/// # Errors
///
/// There are fewer.
pub fn subset<T: Copy>(rng: &mut Rng, elements: &[T], count: usize) -> Result<Vec<T>, Failure> {
    let (mut left, mut chosen) = (elements.to_vec(), Vec::new());
    while chosen.len() < count {
        let at = integer(rng, 0, i32::try_from(left.len())?)?;
        chosen.push(left.remove(usize::try_from(at)?));
    }
    Ok(chosen)
}

/// A random color (`_rand_color`).
pub fn color(rng: &mut Rng) -> Result<Color, Failure> {
    element(rng, &Color::SORTED)
}

/// A random direction.
pub fn direction(rng: &mut Rng) -> Result<Direction, Failure> {
    element(rng, &[0, 1, 2, 3].map(Direction))
}
