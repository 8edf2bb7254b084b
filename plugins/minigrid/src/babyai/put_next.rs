//! Put an object next to another (`envs/babyai/putnext.py`).

use cartwheel::Error;

use super::{Described, Instruction, Layout, Maker, Task, require};
use crate::cell::Cell;
use crate::options::level_options;
use crate::world::{Place, Unmade};

/// To put one object next to another.
pub(super) fn put_next(moved: Cell, fixed: Cell) -> Instruction {
    Instruction::PutNext { moved: Described::like(moved), fixed: Described::like(fixed) }
}

/// Adds different objects to each of two rooms without a wall between them; returns those of the left and
/// of the right room, and where they are.
pub(super) fn two_rooms(
    maker: &mut Maker<'_>,
    count: usize,
) -> Result<[Vec<(Cell, Place)>; 2], Unmade> {
    maker.place_agent(Some([0; 2]))?;
    let left = maker.add_distractors(Some([0; 2]), count, true)?;
    let right = maker.add_distractors(Some([1, 0]), count, true)?;
    maker.rooms.remove_wall(maker.world, [0; 2], 0)?;
    Ok([left, right])
}

level_options! {
    /// Keywords of `PutNextLocal`.
    pub struct PutNextLocalOptions {
        /// Columns and rows of the room, walls included.
        room_size: i32 = 8,
        /// Number of objects, from 2 to 18.
        num_objs: usize = 8,
    }
}

/// Put an object next to another in one room.
#[derive(Debug)]
pub struct PutNextLocal(usize);

impl Task for PutNextLocal {
    type Options = PutNextLocalOptions;

    fn new(options: &PutNextLocalOptions) -> Result<(Self, Layout), Error> {
        let count = options.num_objs;
        require((2..=18).contains(&count), "num_objs", "from 2 to 18", count)?;
        Ok((Self(count), Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        let objects = maker.add_distractors(None, self.0, true)?;
        maker.require_reachable()?;
        let chosen = maker.subset(&objects, 2)?;
        Ok(put_next(chosen[0].0, chosen[1].0))
    }
}

level_options! {
    /// Keywords of `PutNext`.
    pub struct PutNextOptions {
        /// Columns and rows of a room, walls included, at least 4.
        room_size: i32 = 5,
        /// Objects in each room, from 1 to 9.
        objs_per_room: usize = 2,
        /// Whether the agent carries the object when the episode begins.
        start_carrying: bool,
    }
}

/// Put an object of one room next to one of the other.
#[derive(Debug)]
pub struct PutNext {
    count: usize,
    carrying: bool,
}

impl Task for PutNext {
    type Options = PutNextOptions;

    fn new(options: &PutNextOptions) -> Result<(Self, Layout), Error> {
        let (size, count) = (options.room_size, options.objs_per_room);
        require(size >= 4, "room_size", "at least 4", size)?;
        require((1..=9).contains(&count), "objs_per_room", "from 1 to 9", count)?;
        let max_steps = Some(8 * i64::from(size).pow(2));
        let layout = Layout { size, columns: 2, rows: 1, max_steps };
        Ok((Self { count, carrying: options.start_carrying }, layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let [left, right] = two_rooms(maker, self.count)?;
        let mut pair = [maker.element(&left)?, maker.element(&right)?];
        if maker.coin()? {
            pair.reverse();
        }
        if self.carrying {
            maker.carried = Some(pair[0]);
        }
        Ok(put_next(pair[0].0, pair[1].0))
    }
}
