//! Tasks of other kinds (`envs/babyai/other.py`).

use cartwheel::Error;

use super::go_to::DoorOptions;
use super::put_next::put_next;
use super::{Described, Instruction, Layout, MIDDLE, Maker, Task, require};
use crate::cell::{Cell, Kind};
use crate::env::level_options;
use crate::rooms::OBJECTS;
use crate::world::Unmade;

/// Go to, open or pick up one of several things in the middle room.
#[derive(Debug)]
pub struct ActionObjDoor;

impl Task for ActionObjDoor {
    type Options = DoorOptions;

    fn new(_: &DoorOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::nine(7)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let added = maker.add_distractors(Some(MIDDLE), 5, true)?;
        let mut objects: Vec<Cell> = added.into_iter().map(|(object, _)| object).collect();
        for _ in 0..4 {
            let door = maker.add_door(MIDDLE, None, None, Some(false))?;
            objects.push(Cell::new(Kind::Door, door.color));
        }
        maker.place_agent(Some(MIDDLE))?;
        let object = maker.element(&objects)?;
        let described = Described::like(object);
        Ok(match (maker.coin()?, object.kind) {
            (true, _) => Instruction::GoTo(described),
            (false, Kind::Door) => Instruction::open(described),
            (false, _) => Instruction::pickup(described),
        })
    }
}

level_options! {
    /// Keywords of `FindObjS5`.
    pub struct FindObjOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 5,
    }
}

/// Pick up the only object of nine rooms.
#[derive(Debug)]
pub struct FindObj;

impl Task for FindObj {
    type Options = FindObjOptions;

    fn new(options: &FindObjOptions) -> Result<(Self, Layout), Error> {
        let size = options.room_size;
        Ok((Self, Layout { max_steps: Some(20 * i64::from(size).pow(2)), ..Layout::nine(size) }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let room = maker.room()?;
        let (object, _) = maker.add_object(room, None, None)?;
        maker.place_agent(Some(MIDDLE))?;
        maker.connect_all()?;
        Ok(Instruction::pickup(Described::of(object.kind)))
    }
}

level_options! {
    /// Keywords of `KeyCorridor`.
    pub struct KeyCorridorOptions {
        /// Rows of rooms.
        num_rows: i32 = 3,
        /// The object to pick up: "key", "ball" or "box".
        obj_type: String = "ball".to_owned(),
        /// Columns and rows of a room, walls included.
        room_size: i32 = 6,
    }
}

/// Pick up the object behind a locked door of a corridor.
#[derive(Debug)]
pub struct KeyCorridor {
    rows: i32,
    kind: Kind,
}

impl Task for KeyCorridor {
    type Options = KeyCorridorOptions;

    fn new(options: &KeyCorridorOptions) -> Result<(Self, Layout), Error> {
        let (size, rows) = (options.room_size, options.num_rows);
        let kind = Kind::from_name(&options.obj_type).filter(|kind| OBJECTS.contains(kind));
        let wanted = "\"key\", \"ball\" or \"box\"";
        require(kind.is_some(), "obj_type", wanted, &options.obj_type)?;
        let max_steps = Some(30 * i64::from(size).pow(2));
        let layout = Layout { size, columns: 3, rows, max_steps };
        Ok((Self { rows, kind: kind.unwrap_or(Kind::Ball) }, layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        for row in 1..self.rows {
            maker.rooms.remove_wall(maker.world, [1, row], 3)?;
        }
        let behind = [2, maker.integer(self.rows)?];
        let door = maker.add_door(behind, Some(2), None, Some(true))?;
        maker.add_object(behind, Some(self.kind), None)?;
        let with_key = [0, maker.integer(self.rows)?];
        maker.add_object(with_key, Some(Kind::Key), Some(door.color))?;
        maker.place_agent(Some([1, self.rows / 2]))?;
        maker.connect_all()?;
        Ok(Instruction::pickup(Described::of(self.kind)))
    }
}

/// Pick up the only ball.
#[derive(Debug)]
pub struct OneRoom;

impl Task for OneRoom {
    type Options = super::go_to::RoomOptions;

    fn new(options: &super::go_to::RoomOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.add_object([0; 2], Some(Kind::Ball), None)?;
        maker.place_agent(None)?;
        Ok(Instruction::pickup(Described::of(Kind::Ball)))
    }
}

level_options! {
    /// Keywords of `MoveTwoAcross`.
    pub struct MoveTwoAcrossOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 5,
        /// Objects in each room, from 2 to 9.
        objs_per_room: usize = 2,
    }
}

/// Put an object of each room next to one of the other room.
#[derive(Debug)]
pub struct MoveTwoAcross(usize);

impl Task for MoveTwoAcross {
    type Options = MoveTwoAcrossOptions;

    fn new(options: &MoveTwoAcrossOptions) -> Result<(Self, Layout), Error> {
        let (size, count) = (options.room_size, options.objs_per_room);
        require((2..=9).contains(&count), "objs_per_room", "from 2 to 9", count)?;
        let max_steps = Some(16 * i64::from(size).pow(2));
        Ok((Self(count), Layout { size, columns: 2, rows: 1, max_steps }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(Some([0; 2]))?;
        let left = maker.add_distractors(Some([0; 2]), self.0, true)?;
        let right = maker.add_distractors(Some([1, 0]), self.0, true)?;
        maker.rooms.remove_wall(maker.world, [0; 2], 0)?;
        let (left, right) = (maker.subset(&left, 2)?, maker.subset(&right, 2)?);
        let parts = [put_next(left[0].0, right[0].0), put_next(right[1].0, left[1].0)];
        Ok(Instruction::Before(Box::new(parts)))
    }
}
