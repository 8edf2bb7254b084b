//! Rooms in rows and columns, with doors between them (`minigrid/core/roomgrid.py`).

use cartwheel::{Failure, Rng};

use crate::cell::{Cell, Color, Door, Kind};
use crate::world::{
    AHEAD, Area, Direction, MAX_TRIES, Place, Unmade, World, color, element, integer,
};

/// Tries to place something in a room.
const TRIES: Option<u32> = Some(1000);
/// Tries to connect all rooms.
const CONNECTING: u32 = 5000;

/// The kinds of objects that rooms contain.
pub const OBJECTS: [Kind; 3] = [Kind::Key, Kind::Ball, Kind::Box];

/// A room. Sides are counted right, down, left, up.
#[derive(Debug, Clone, Default)]
pub struct Room {
    top: Place,
    /// The opening of each side.
    pub sides: [Option<Side>; 4],
    /// Where the door of each side is; `None` on a side without a neighbor.
    places: [Option<Place>; 4],
    locked: bool,
    objects: Vec<(Kind, Color)>,
}

/// An opened side of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A door in this place.
    Door(Place),
    /// There is no wall.
    Open,
}

impl Room {
    /// Whether there is a room on a side.
    pub fn has_neighbor(&self, side: usize) -> bool {
        self.places[side].is_some()
    }
}

/// The rooms of a level that is being made.
#[derive(Debug)]
pub struct Rooms {
    size: i32,
    pub columns: i32,
    pub rows: i32,
    /// Row by row.
    pub rooms: Vec<Room>,
}

/// A door that was added.
#[derive(Debug, Clone, Copy)]
pub struct AddedDoor {
    pub place: Place,
    pub color: Color,
}

impl Rooms {
    /// Draws the walls of rooms of `size` cells, walls included, and the places of their doors; the
    /// agent stands in the middle.
    ///
    /// # Errors
    ///
    /// Rooms have no space for doors.
    pub fn new(
        world: &mut World,
        size: i32,
        [columns, rows]: [i32; 2],
        rng: &mut Rng,
    ) -> Result<Self, Unmade> {
        let mut own = Self { size, columns, rows, rooms: Vec::new() };
        for row in 0..rows {
            for column in 0..columns {
                let top = [column * (size - 1), row * (size - 1)];
                world.walls(top, [size; 2]);
                own.rooms.push(Room { top, ..Room::default() });
            }
        }
        for row in 0..rows {
            for column in 0..columns {
                let at = own.number([column, row])?;
                let [left, up] = own.rooms[at].top;
                let (right, down) = (left + size - 1, up + size - 1);
                if column < columns - 1 {
                    let place = [right, integer(rng, up + 1, down)?];
                    own.rooms[at].places[0] = Some(place);
                }
                if row < rows - 1 {
                    let place = [integer(rng, left + 1, right)?, down];
                    own.rooms[at].places[1] = Some(place);
                }
                if column > 0 {
                    own.rooms[at].places[2] = own.rooms[own.number([column - 1, row])?].places[0];
                }
                if row > 0 {
                    own.rooms[at].places[3] = own.rooms[own.number([column, row - 1])?].places[1];
                }
            }
        }
        let middle = |rooms: i32| rooms / 2 * (size - 1) + size / 2;
        world.agent = [middle(columns), middle(rows)];
        world.direction = Direction::RIGHT;
        Ok(own)
    }

    pub fn number(&self, [column, row]: Place) -> Result<usize, Unmade> {
        if (0..self.columns).contains(&column) && (0..self.rows).contains(&row) {
            return Ok(usize::try_from(row * self.columns + column)?);
        }
        let sizes = [self.columns, self.rows];
        let room = [column, row];
        Err(Failure::new(format!("room {room:?} is outside of the {sizes:?} rooms")).into())
    }

    /// The room that has a place, counted by column and row.
    pub fn of(&self, place: Place) -> Place {
        place.map(|at| at / (self.size - 1))
    }

    fn area(&self, room: Place) -> Result<Area, Unmade> {
        Ok(Area { top: self.rooms[self.number(room)?].top, size: [self.size; 2] })
    }

    /// Puts an object into a room, not next to the agent (`place_in_room`).
    pub fn put(
        &mut self,
        world: &mut World,
        room: Place,
        object: Cell,
        rng: &mut Rng,
    ) -> Result<Place, Unmade> {
        let area = self.area(room)?;
        let place = world.place(object, area, TRIES, rng, |world, place| {
            let distance = [0, 1].map(|at| (world.agent[at] - place[at]).abs());
            distance[0] + distance[1] < 2
        })?;
        let at = self.number(room)?;
        self.rooms[at].objects.push((object.kind, object.color));
        Ok(place)
    }

    /// Adds an object, of a random kind and color where they are not given (`add_object`).
    pub fn add_object(
        &mut self,
        world: &mut World,
        room: Place,
        kind: Option<Kind>,
        of: Option<Color>,
        rng: &mut Rng,
    ) -> Result<(Cell, Place), Unmade> {
        let kind = kind.map_or_else(|| element(rng, &OBJECTS), Ok)?;
        let color = of.map_or_else(|| color(rng), Ok)?;
        let object = world.object(kind, color);
        let place = self.put(world, room, object, rng)?;
        Ok((object, place))
    }

    /// Adds a door (`add_door`); what is not given is random.
    pub fn add_door(
        &mut self,
        world: &mut World,
        room: Place,
        side: Option<usize>,
        of: Option<Color>,
        locked: Option<bool>,
        rng: &mut Rng,
    ) -> Result<AddedDoor, Unmade> {
        let at = self.number(room)?;
        let own = &self.rooms[at];
        let free = |side: usize| own.places[side].is_some() && own.sides[side].is_none();
        let side = match side {
            Some(side) => side,
            None => drawn(rng, free)?,
        };
        let color = of.map_or_else(|| color(rng), Ok)?;
        let locked = match locked {
            Some(locked) => locked,
            None => integer(rng, 0, 2)? == 0,
        };
        let Some(place) = own.places[side].filter(|_| own.sides[side].is_none()) else {
            let what = format!("room {room:?} cannot have a door on side {side}");
            return Err(Failure::new(what).into());
        };
        self.rooms[at].locked = locked;
        let door = if locked { Door::Locked } else { Door::Closed };
        let door = Cell { door, ..world.object(Kind::Door, color) };
        world.set(place, door);
        self.open(room, side, Side::Door(place))?;
        Ok(AddedDoor { place, color })
    }

    /// Notes that a side is open, also in the neighbor.
    fn open(&mut self, room: Place, side: usize, how: Side) -> Result<(), Unmade> {
        let neighbor = [0, 1].map(|at| room[at] + AHEAD[side][at]);
        let [at, other] = [self.number(room)?, self.number(neighbor)?];
        self.rooms[at].sides[side] = Some(how);
        self.rooms[other].sides[(side + 2) % 4] = Some(how);
        Ok(())
    }

    /// Removes the wall between two rooms.
    pub fn remove_wall(
        &mut self,
        world: &mut World,
        room: Place,
        side: usize,
    ) -> Result<(), Unmade> {
        let ([left, up], inner) = (self.area(room)?.top, self.size - 2);
        match side {
            0 => world.vertical([left + self.size - 1, up + 1], inner, Cell::EMPTY),
            1 => world.horizontal([left + 1, up + self.size - 1], inner, Cell::EMPTY),
            2 => world.vertical([left, up + 1], inner, Cell::EMPTY),
            _ => world.horizontal([left + 1, up], inner, Cell::EMPTY),
        }
        self.open(room, side, Side::Open)
    }

    /// Puts the agent into a room, a random one where it is not given, not in front of an object.
    pub fn place_agent(
        &self,
        world: &mut World,
        room: Option<Place>,
        rng: &mut Rng,
    ) -> Result<(), Unmade> {
        let room = match room {
            Some(room) => room,
            None => [integer(rng, 0, self.columns)?, integer(rng, 0, self.rows)?],
        };
        let area = self.area(room)?;
        for _ in 0..MAX_TRIES {
            world.place_agent(area, TRIES, rng)?;
            if matches!(world.get(world.front()).kind, Kind::Empty | Kind::Wall) {
                return Ok(());
            }
        }
        Err(Failure::new(format!("the agent has no place in room {room:?}")).into())
    }

    /// Adds doors of these colors until the agent can reach every room.
    pub fn connect_all(
        &mut self,
        world: &mut World,
        colors: &[Color],
        rng: &mut Rng,
    ) -> Result<(), Unmade> {
        let start = self.of(world.agent);
        for _ in 0..=CONNECTING {
            if self.reachable(start)? == self.rooms.len() {
                return Ok(());
            }
            let room = [integer(rng, 0, self.columns)?, integer(rng, 0, self.rows)?];
            let side = usize::try_from(integer(rng, 0, 4)?)?;
            let own = &self.rooms[self.number(room)?];
            if own.places[side].is_none() || own.sides[side].is_some() {
                continue;
            }
            let neighbor = [0, 1].map(|at| room[at] + AHEAD[side][at]);
            if own.locked || self.rooms[self.number(neighbor)?].locked {
                continue;
            }
            let color = element(rng, colors)?;
            self.add_door(world, room, Some(side), Some(color), Some(false), rng)?;
        }
        Err(Unmade::Again(format!("the rooms were not connected after {CONNECTING} tries")))
    }

    /// Adds random objects to a room, or to random rooms (`add_distractors`). `unique` ones differ from
    /// each other and from what is there.
    pub fn add_distractors(
        &mut self,
        world: &mut World,
        room: Option<Place>,
        count: usize,
        unique: bool,
        rng: &mut Rng,
    ) -> Result<Vec<(Cell, Place)>, Unmade> {
        let known = self.rooms.iter().flat_map(|room| room.objects.iter().copied());
        let (mut known, mut added): (Vec<_>, _) = (known.collect(), Vec::new());
        for _ in 0..MAX_TRIES {
            if added.len() == count {
                return Ok(added);
            }
            let color = element(rng, &Color::SORTED)?;
            let kind = element(rng, &OBJECTS)?;
            if unique && known.contains(&(kind, color)) {
                continue;
            }
            let room = match room {
                Some(room) => room,
                None => [integer(rng, 0, self.columns)?, integer(rng, 0, self.rows)?],
            };
            added.push(self.add_object(world, room, Some(kind), Some(color), rng)?);
            known.push((kind, color));
        }
        Err(Failure::new(format!("{count} different objects were not found")).into())
    }

    /// Whether a place is in a room, walls included.
    pub fn contains(&self, room: Place, place: Place) -> bool {
        (0..2).all(|at| {
            let first = room[at] * (self.size - 1);
            (first..first + self.size).contains(&place[at])
        })
    }

    /// The number of rooms that are reached from one.
    fn reachable(&self, start: Place) -> Result<usize, Unmade> {
        let (mut reached, mut waiting) = (vec![false; self.rooms.len()], vec![start]);
        while let Some(room) = waiting.pop() {
            let at = self.number(room)?;
            if std::mem::replace(&mut reached[at], true) {
                continue;
            }
            let sides = (0..4).filter(|&side| self.rooms[at].sides[side].is_some());
            waiting.extend(sides.map(|side| [0, 1].map(|at| room[at] + AHEAD[side][at])));
        }
        Ok(reached.into_iter().filter(|&room| room).count())
    }
}

/// A random side that fits.
fn drawn(rng: &mut Rng, fits: impl Fn(usize) -> bool) -> Result<usize, Unmade> {
    for _ in 0..MAX_TRIES {
        let side = usize::try_from(integer(rng, 0, 4)?)?;
        if fits(side) {
            return Ok(side);
        }
    }
    Err(Failure::new("a room has no side for a door").into())
}
