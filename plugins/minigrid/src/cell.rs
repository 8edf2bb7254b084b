//! Cells of a grid and what they contain (`minigrid/core/world_object.py`, `constants.py`).

use cartwheel::{Failure, State};

/// A kind of object; the number is its code in observations (`OBJECT_TO_IDX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing: a free cell.
    Empty = 1,
    Wall = 2,
    Floor = 3,
    Door = 4,
    Key = 5,
    Ball = 6,
    Box = 7,
    Goal = 8,
    Lava = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Empty,
        Self::Wall,
        Self::Floor,
        Self::Door,
        Self::Key,
        Self::Ball,
        Self::Box,
        Self::Goal,
        Self::Lava,
    ];

    /// Its name in missions and keywords.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Wall => "wall",
            Self::Floor => "floor",
            Self::Door => "door",
            Self::Key => "key",
            Self::Ball => "ball",
            Self::Box => "box",
            Self::Goal => "goal",
            Self::Lava => "lava",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A color; the number is its code in observations (`COLOR_TO_IDX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Color {
    Red = 0,
    Green = 1,
    Blue = 2,
    Purple = 3,
    Yellow = 4,
    Gray = 5,
}

impl Color {
    /// The colors by their names: random colors are drawn from this order (`COLOR_NAMES`).
    pub const SORTED: [Self; 6] =
        [Self::Blue, Self::Green, Self::Gray, Self::Purple, Self::Red, Self::Yellow];

    /// Its name in missions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Green => "green",
            Self::Blue => "blue",
            Self::Purple => "purple",
            Self::Yellow => "yellow",
            Self::Gray => "grey",
        }
    }

    /// Red, green and blue.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Self::Red => [255, 0, 0],
            Self::Green => [0, 255, 0],
            Self::Blue => [0, 0, 255],
            Self::Purple => [112, 39, 195],
            Self::Yellow => [255, 255, 0],
            Self::Gray => [100; 3],
        }
    }
}

/// The state of a door, as in observations; of any other object it is `Open`, which is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Door {
    Open = 0,
    Closed = 1,
    Locked = 2,
}

/// A cell: nothing, or an object. Objects with the same looks differ in their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub kind: Kind,
    pub color: Color,
    pub door: Door,
    /// The number of the object in its episode, from 1 on; 0 for walls and what has no identity.
    pub id: u16,
}

impl Cell {
    /// A free cell.
    pub const EMPTY: Self = Self::new(Kind::Empty, Color::Red);
    /// A wall.
    pub const WALL: Self = Self::new(Kind::Wall, Color::Gray);
    /// A goal.
    pub const GOAL: Self = Self::new(Kind::Goal, Color::Green);
    /// Lava.
    pub const LAVA: Self = Self::new(Kind::Lava, Color::Red);

    /// An object without identity.
    pub const fn new(kind: Kind, color: Color) -> Self {
        Self { kind, color, door: Door::Open, id: 0 }
    }

    /// A door.
    pub const fn door(color: Color, door: Door) -> Self {
        Self { door, ..Self::new(Kind::Door, color) }
    }

    /// Whether nothing is there.
    pub fn is_empty(self) -> bool {
        self.kind == Kind::Empty
    }

    /// Whether the agent may stand there.
    pub fn can_overlap(self) -> bool {
        match self.kind {
            Kind::Empty | Kind::Floor | Kind::Goal | Kind::Lava => true,
            Kind::Door => self.door == Door::Open,
            _ => false,
        }
    }

    /// Whether the agent may carry it.
    pub fn can_pickup(self) -> bool {
        matches!(self.kind, Kind::Key | Kind::Ball | Kind::Box)
    }

    /// Whether the agent sees what is behind it.
    pub fn is_opaque(self) -> bool {
        match self.kind {
            Kind::Wall => true,
            Kind::Door => self.door != Door::Open,
            _ => false,
        }
    }

    /// Number of different looks.
    pub const LOOKS: usize = Kind::ALL.len() * Color::SORTED.len() * 3;

    /// A number below [`Cell::LOOKS`], the same for cells that look the same.
    pub fn look(self) -> usize {
        let [kind, color, door] = self.encode().map(usize::from);
        ((kind - 1) * Color::SORTED.len() + color) * 3 + door
    }

    /// The three numbers of an observation.
    pub fn encode(self) -> [u8; 3] {
        [self.kind as u8, self.color as u8, self.door as u8]
    }
}

impl State for Cell {
    fn save(&self, state: &mut Vec<u8>) {
        (self.encode(), self.id).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let ([kind, color, door], id): ([u8; 3], u16) = State::load(state)?;
        let unknown = || {
            Failure::new(format!("a cell of the state has kind {kind}, color {color}, door {door}"))
        };
        let kind = Kind::ALL.into_iter().find(|one| *one as u8 == kind).ok_or_else(unknown)?;
        let color = Color::SORTED.into_iter().find(|one| *one as u8 == color);
        let door =
            [Door::Open, Door::Closed, Door::Locked].into_iter().find(|one| *one as u8 == door);
        Ok(Self { kind, color: color.ok_or_else(unknown)?, door: door.ok_or_else(unknown)?, id })
    }
}
