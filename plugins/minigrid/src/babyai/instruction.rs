//! Instructions: what is to be done with which objects, and whether it is done
//! (`envs/babyai/core/verifier.py`, without `BABYAI_DONE_ACTIONS`).

use cartwheel::{Failure, State};

use crate::cell::{Cell, Color, Door, Kind};
use crate::rooms::Rooms;
use crate::world::{Action, Direction, Place, World};

/// A side of the agent, as it stands when an episode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Left,
    Right,
    Front,
    Behind,
}

impl Location {
    /// In the order of `LOC_NAMES`.
    pub const ALL: [Self; 4] = [Self::Left, Self::Right, Self::Front, Self::Behind];

    fn words(self) -> &'static str {
        match self {
            Self::Left => " on your left",
            Self::Right => " on your right",
            Self::Front => " in front of you",
            Self::Behind => " behind you",
        }
    }

    /// Whether a difference of places lies there for an agent that looks in a direction.
    fn has(self, way: Place, direction: Direction) -> bool {
        let ahead = direction.ahead();
        let right = [-ahead[1], ahead[0]];
        let product = |other: Place| way[0] * other[0] + way[1] * other[1];
        match self {
            Self::Left => product(right) < 0,
            Self::Right => product(right) > 0,
            Self::Front => product(ahead) > 0,
            Self::Behind => product(ahead) < 0,
        }
    }
}

/// A description of objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct Described {
    pub kind: Option<Kind>,
    pub color: Option<Color>,
    pub location: Option<Location>,
}

impl Described {
    /// Objects that look as this one.
    pub fn like(object: Cell) -> Self {
        Self { kind: Some(object.kind), color: Some(object.color), location: None }
    }

    /// Objects of a kind.
    pub fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// Whether a cell looks as described.
    fn fits(&self, cell: Cell) -> bool {
        !cell.is_empty()
            && self.kind.is_none_or(|kind| kind == cell.kind)
            && self.color.is_none_or(|color| color == cell.color)
    }

    /// The objects that are meant, column by column, and their places.
    pub fn find(self, world: &World, rooms: &Rooms) -> Objects {
        let room = rooms.of(world.agent);
        let is_there = |place: Place| match self.location {
            None => true,
            Some(location) => {
                let way = [0, 1].map(|at| place[at] - world.agent[at]);
                rooms.contains(room, place) && location.has(way, world.direction)
            }
        };
        let mut found = Objects::default();
        for place in everywhere(world) {
            let cell = world.get(place);
            if self.fits(cell) && is_there(place) {
                found.cells.push(cell);
                found.places.push(place);
            }
        }
        found
    }

    /// The description in words.
    fn words(self, count: usize) -> String {
        let article = if count > 1 { "a " } else { "the " };
        let color = self.color.map_or(String::new(), |color| format!("{} ", color.name()));
        let kind = self.kind.map_or("object", Kind::name);
        let location = self.location.map_or("", Location::words);
        format!("{article}{color}{kind}{location}")
    }
}

fn everywhere(world: &World) -> impl Iterator<Item = Place> + use<> {
    let [width, height] = [world.width, world.height];
    (0..width).flat_map(move |column| (0..height).map(move |row| [column, row]))
}

/// The objects that an instruction is about, as they were when the episode began, and the places where
/// they were seen last: places are looked up when an object is dropped.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    cells: Vec<Cell>,
    pub places: Vec<Place>,
}

cartwheel::state! { impl State for Objects { cells, places } }

impl Objects {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether an object is one of them: objects that look the same differ in `id`.
    fn has(&self, object: Cell) -> bool {
        object.id > 0 && self.cells.iter().any(|cell| cell.id == object.id)
    }

    /// Looks up where they are.
    fn look(&mut self, world: &World) {
        let places = everywhere(world).filter(|&place| self.has(world.get(place)));
        self.places = places.collect();
    }
}

/// Whether two places are next to each other, not diagonally.
fn are_next(one: Place, other: Place) -> bool {
    (one[0] - other[0]).abs() + (one[1] - other[1]).abs() == 1
}

/// The state of an instruction after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Continue,
    Success,
    Failure,
}

/// An instruction. `strict` ones fail at the first wrong object.
#[derive(Debug, Clone)]
pub enum Instruction {
    Open {
        door: Described,
        strict: bool,
    },
    GoTo(Described),
    Pickup {
        object: Described,
        strict: bool,
    },
    PutNext {
        moved: Described,
        fixed: Described,
    },
    And(Box<[Instruction; 2]>),
    /// The first, then the second.
    Before(Box<[Instruction; 2]>),
    /// The second, then the first.
    After(Box<[Instruction; 2]>),
}

impl Instruction {
    /// To open a door.
    pub fn open(door: Described) -> Self {
        Self::Open { door, strict: false }
    }

    /// To pick up an object.
    pub fn pickup(object: Described) -> Self {
        Self::Pickup { object, strict: false }
    }

    /// The instruction in words: the mission.
    pub fn words(&self, world: &World, rooms: &Rooms) -> String {
        let named = |what: &Described| what.words(what.find(world, rooms).cells.len());
        let both = |parts: &[Self; 2], between: &str| {
            let [one, other] = parts.each_ref().map(|part| part.words(world, rooms));
            format!("{one}{between}{other}")
        };
        match self {
            Self::Open { door, .. } => format!("open {}", named(door)),
            Self::GoTo(object) => format!("go to {}", named(object)),
            Self::Pickup { object, .. } => format!("pick up {}", named(object)),
            Self::PutNext { moved, fixed } => {
                format!("put {} next to {}", named(moved), named(fixed))
            }
            Self::And(parts) => both(parts, " and "),
            Self::Before(parts) => both(parts, ", then "),
            Self::After(parts) => both(parts, " after you "),
        }
    }

    /// Number of ways through the rooms (`num_navs_needed`).
    pub fn ways(&self) -> i64 {
        match self {
            Self::PutNext { .. } => 2,
            Self::Open { .. } | Self::GoTo(_) | Self::Pickup { .. } => 1,
            Self::And(parts) | Self::Before(parts) | Self::After(parts) => {
                parts.iter().map(Self::ways).sum()
            }
        }
    }

    /// The reason why the instruction does not suit its level (`validate_instrs`). `locked` are the
    /// colors of locked doors, whose keys are not to be moved.
    pub fn objection(
        &self,
        world: &World,
        rooms: &Rooms,
        locked: &[Color],
    ) -> Option<&'static str> {
        let is_needed = |what: &Described| {
            what.kind == Some(Kind::Key) && what.color.is_some_and(|color| locked.contains(&color))
        };
        let needed = "the instruction is about the key of a locked door";
        match self {
            Self::PutNext { moved, fixed } => {
                let [from, to] = [moved, fixed].map(|what| what.find(world, rooms));
                // Only objects with a number: a `PutNext` does not describe walls.
                if from.cells.iter().any(|cell| to.has(*cell)) {
                    return Some("an object is to be put next to itself");
                }
                let next = |place: &Place| to.places.iter().any(|other| are_next(*place, *other));
                if from.places.iter().any(next) {
                    return Some("the objects are next to each other");
                }
                (is_needed(moved) || is_needed(fixed)).then_some(needed)
            }
            Self::Open { door: what, .. }
            | Self::GoTo(what)
            | Self::Pickup { object: what, .. } => is_needed(what).then_some(needed),
            Self::And(parts) | Self::Before(parts) | Self::After(parts) => {
                parts.iter().find_map(|part| part.objection(world, rooms, locked))
            }
        }
    }

    /// Begins to watch the agent (`reset_verifier`).
    pub fn watch(&self, world: &World, rooms: &Rooms) -> Watch {
        let find = |what: &Described| what.find(world, rooms);
        let both = |parts: &[Self; 2]| {
            parts.iter().map(|part| part.watch(world, rooms)).collect::<Vec<_>>()
        };
        let (task, objects, parts) = match self {
            Self::Open { door, strict } => (Task::Open(*strict), vec![find(door)], Vec::new()),
            Self::GoTo(object) => (Task::GoTo, vec![find(object)], Vec::new()),
            Self::Pickup { object, strict } => {
                (Task::Pickup(*strict), vec![find(object)], Vec::new())
            }
            Self::PutNext { moved, fixed } => {
                (Task::PutNext, vec![find(moved), find(fixed)], Vec::new())
            }
            Self::And(parts) => (Task::And, Vec::new(), both(parts)),
            Self::Before(parts) => (Task::Before, Vec::new(), both(parts)),
            Self::After(parts) => (Task::After, Vec::new(), both(parts)),
        };
        Watch { task, objects, parts, carried: Cell::EMPTY, done: [false; 2] }
    }
}

/// The kind of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Open(bool),
    GoTo,
    Pickup(bool),
    PutNext,
    And,
    Before,
    After,
}

impl State for Task {
    fn save(&self, state: &mut Vec<u8>) {
        let (number, strict) = match *self {
            Self::Open(strict) => (0_u8, strict),
            Self::GoTo => (1, false),
            Self::Pickup(strict) => (2, strict),
            Self::PutNext => (3, false),
            Self::And => (4, false),
            Self::Before => (5, false),
            Self::After => (6, false),
        };
        (number, strict).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let (number, strict): (u8, bool) = State::load(state)?;
        Ok(match number {
            0 => Self::Open(strict),
            1 => Self::GoTo,
            2 => Self::Pickup(strict),
            3 => Self::PutNext,
            4 => Self::And,
            5 => Self::Before,
            6 => Self::After,
            _ => {
                let text = format!("an instruction of the state must be from 0 to 6, got {number}");
                return Err(Failure::new(text));
            }
        })
    }
}

/// An instruction that is being followed.
#[derive(Debug, Clone)]
pub struct Watch {
    task: Task,
    /// One or two descriptions of an action.
    objects: Vec<Objects>,
    /// The two parts of a sequence.
    parts: Vec<Watch>,
    /// The object that the agent carried when the action was looked at last.
    carried: Cell,
    /// Which parts have succeeded.
    done: [bool; 2],
}

impl State for Watch {
    fn save(&self, state: &mut Vec<u8>) {
        (self.objects.clone(), self.carried, self.done).save(state);
        self.task.save(state);
        self.parts.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let (objects, carried, done): (Vec<Objects>, _, _) = State::load(state)?;
        let (task, parts): (Task, Vec<Self>) = (State::load(state)?, State::load(state)?);
        let expected = match task {
            Task::Open(_) | Task::GoTo | Task::Pickup(_) => (1, 0),
            Task::PutNext => (2, 0),
            Task::And | Task::Before | Task::After => (0, 2),
        };
        if (objects.len(), parts.len()) != expected {
            return Err(Failure::new("an instruction has the wrong number of parts"));
        }
        Ok(Self { task, objects, parts, carried, done })
    }
}

impl Watch {
    /// Looks up where objects are, after one was dropped.
    pub fn look(&mut self, world: &World) {
        self.objects.iter_mut().for_each(|objects| objects.look(world));
        self.parts.iter_mut().for_each(|part| part.look(world));
    }

    /// Looks at an action of the agent, which was done (`verify`).
    pub fn verify(&mut self, world: &World, action: Action) -> Status {
        let (front, carrying) = (world.front(), world.carrying);
        match self.task {
            Task::Open(strict) if action == Action::Toggle => {
                let cell = world.get(front);
                if self.objects[0].has(cell) && cell.door == Door::Open {
                    return Status::Success;
                }
                if strict && cell.kind == Kind::Door { Status::Failure } else { Status::Continue }
            }
            Task::Open(_) => Status::Continue,
            Task::GoTo if self.objects[0].places.contains(&front) => Status::Success,
            Task::GoTo => Status::Continue,
            Task::Pickup(strict) => {
                let before = std::mem::replace(&mut self.carried, carrying);
                if action != Action::Pickup {
                    return Status::Continue;
                }
                if before.is_empty() && self.objects[0].has(carrying) {
                    return Status::Success;
                }
                let is_wrong = strict && !carrying.is_empty();
                if is_wrong { Status::Failure } else { Status::Continue }
            }
            Task::PutNext => {
                let before = std::mem::replace(&mut self.carried, carrying);
                let is_dropped = action == Action::Drop && carrying.is_empty();
                if is_dropped && self.objects[0].has(before) {
                    let next = |place: &Place| are_next(front, *place);
                    if self.objects[1].places.iter().any(next) {
                        return Status::Success;
                    }
                }
                Status::Continue
            }
            Task::And => {
                for (part, done) in self.parts.iter_mut().zip(&mut self.done) {
                    *done = *done || part.verify(world, action) == Status::Success;
                }
                if self.done == [true; 2] { Status::Success } else { Status::Continue }
            }
            Task::Before => self.in_order([0, 1], world, action),
            Task::After => self.in_order([1, 0], world, action),
        }
    }

    /// Looks at one part, and at the other once the first has succeeded, with the same action.
    fn in_order(&mut self, [first, second]: [usize; 2], world: &World, action: Action) -> Status {
        if !self.done[first] {
            match self.parts[first].verify(world, action) {
                Status::Success => self.done[first] = true,
                other => return other,
            }
        }
        self.parts[second].verify(world, action)
    }
}
