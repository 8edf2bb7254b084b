//! Tasks of other kinds (`envs/babyai/other.py`).

use cartwheel::Error;

use super::put_next::{put_next, two_rooms};
use super::{Described, Instruction, Layout, MIDDLE, Maker, Task, require};
use crate::cell::{Cell, Kind};
use crate::levels::mazes;
use crate::options::{CommonOptions, level_options};
use crate::world::Unmade;

/// Go to, open or pick up one of several things in the middle room.
#[derive(Debug)]
pub struct ActionObjDoor;

impl Task for ActionObjDoor {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
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

/// Pick up the object behind a locked door of a corridor.
#[derive(Debug)]
pub struct KeyCorridor(mazes::KeyCorridor);

impl Task for KeyCorridor {
    type Options = mazes::KeyCorridorOptions;

    fn new(options: &mazes::KeyCorridorOptions) -> Result<(Self, Layout), Error> {
        let corridor = mazes::KeyCorridor::from_options(options)?;
        let layout = Layout::new(options.room_size, [3, options.num_rows]);
        Ok((Self(corridor), Layout { max_steps: Some(corridor.max_steps()), ..layout }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let object = self.0.fill(&mut maker.rooms, maker.world, maker.rng)?;
        Ok(Instruction::pickup(Described::of(object.kind)))
    }
}

/// Pick up the only ball.
#[derive(Debug)]
pub struct OneRoom;

impl Task for OneRoom {
    type Options = super::options::RoomOptions;

    fn new(options: &super::options::RoomOptions) -> Result<(Self, Layout), Error> {
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
        let [left, right] = two_rooms(maker, self.0)?;
        let (left, right) = (maker.subset(&left, 2)?, maker.subset(&right, 2)?);
        let parts = [put_next(left[0].0, right[0].0), put_next(right[1].0, left[1].0)];
        Ok(Instruction::Before(Box::new(parts)))
    }
}
