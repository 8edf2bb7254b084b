//! Unlock doors (`envs/babyai/unlock.py`).

use cartwheel::Error;

use super::options::RoomsOptions;
use super::{Described, Instruction, Layout, MIDDLE, Maker, Task};
use crate::cell::{Cell, Color, Kind};
use crate::levels::unlocking::lock_box_away;
use crate::options::{CommonOptions, level_options};
use crate::world::{Unmade, color};

/// Unlock a door in a maze of rooms.
#[derive(Debug)]
pub struct Unlock;

impl Task for Unlock {
    type Options = RoomsOptions;

    fn new(options: &RoomsOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let (locked, color) = maker.lock_room()?;
        if maker.coin()? {
            let others = Color::SORTED.into_iter().filter(|other| *other != color);
            let others: Vec<Color> = others.collect();
            maker.rooms.connect_all(maker.world, &others, maker.rng)?;
        } else {
            maker.connect_all()?;
        }
        maker.add_distractors_to_each_room(3)?;
        maker.place_agent_outside(Some(locked))?;
        maker.require_reachable()?;
        Ok(Instruction::open(Described::like(Cell::new(Kind::Door, color))))
    }
}

level_options! {
    /// Keywords of `UnlockLocal`.
    pub struct UnlockLocalOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Whether there are three other objects.
        distractors: bool,
    }
}

/// Unlock the only door.
#[derive(Debug)]
pub struct UnlockLocal {
    distractors: bool,
}

impl Task for UnlockLocal {
    type Options = UnlockLocalOptions;

    fn new(options: &UnlockLocalOptions) -> Result<(Self, Layout), Error> {
        Ok((Self { distractors: options.distractors }, Layout::nine(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let door = maker.add_door(MIDDLE, None, None, Some(true))?;
        maker.add_object(MIDDLE, Some(Kind::Key), Some(door.color))?;
        if self.distractors {
            maker.add_distractors(Some(MIDDLE), 3, true)?;
        }
        maker.place_agent(Some(MIDDLE))?;
        Ok(Instruction::open(Described::of(Kind::Door)))
    }
}

/// Unlock the only door, whose key is in a box.
#[derive(Debug)]
pub struct KeyInBox;

impl Task for KeyInBox {
    type Options = RoomsOptions;

    fn new(options: &RoomsOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let door = maker.add_door(MIDDLE, None, None, Some(true))?;
        let key = maker.world.object(Kind::Key, door.color);
        let color = color(maker.rng)?;
        let object = maker.world.box_with(color, key);
        maker.rooms.put(maker.world, MIDDLE, object, maker.rng)?;
        maker.place_agent(Some(MIDDLE))?;
        Ok(Instruction::open(Described::of(Kind::Door)))
    }
}

/// Columns and rows of the rooms of the tasks below.
const ROOM: i32 = 6;

level_options! {
    /// Keywords of `UnlockPickup`.
    pub struct UnlockPickupOptions {
        /// Whether there are four other objects.
        distractors: bool,
    }
}

/// Pick up a box behind a locked door.
#[derive(Debug)]
pub struct UnlockPickup {
    distractors: bool,
}

impl Task for UnlockPickup {
    type Options = UnlockPickupOptions;

    fn new(options: &UnlockPickupOptions) -> Result<(Self, Layout), Error> {
        Ok((Self { distractors: options.distractors }, Layout::new(ROOM, [2, 1])))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let object = lock_box_away(&mut maker.rooms, maker.world, false, maker.rng)?;
        if self.distractors {
            maker.add_distractors(None, 4, true)?;
        }
        maker.place_agent(Some([0; 2]))?;
        Ok(Instruction::pickup(Described::like(object)))
    }
}

/// Pick up a box behind a locked door, which a ball blocks.
#[derive(Debug)]
pub struct BlockedUnlockPickup;

impl Task for BlockedUnlockPickup {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        let max_steps = Some(16 * i64::from(ROOM).pow(2));
        Ok((Self, Layout { size: ROOM, columns: 2, rows: 1, max_steps }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        lock_box_away(&mut maker.rooms, maker.world, true, maker.rng)?;
        maker.place_agent(Some([0; 2]))?;
        Ok(Instruction::pickup(Described::of(Kind::Box)))
    }
}

/// Unlock a door to get the key of another, behind which there is a ball.
#[derive(Debug)]
pub struct UnlockToUnlock;

impl Task for UnlockToUnlock {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        let max_steps = Some(30 * i64::from(ROOM).pow(2));
        Ok((Self, Layout { size: ROOM, columns: 3, rows: 1, max_steps }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let colors = maker.subset(&Color::SORTED, 2)?;
        for (room, color) in colors.iter().enumerate() {
            let (door, key) = if room == 0 { ([0, 0], [2, 0]) } else { ([1, 0], [1, 0]) };
            maker.add_door(door, Some(0), Some(*color), Some(true))?;
            maker.add_object(key, Some(Kind::Key), Some(*color))?;
        }
        maker.add_object([0; 2], Some(Kind::Ball), None)?;
        maker.place_agent(Some([1, 0]))?;
        Ok(Instruction::pickup(Described::of(Kind::Ball)))
    }
}
