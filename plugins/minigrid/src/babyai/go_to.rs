//! Go to an object (`envs/babyai/goto.py`).

use cartwheel::Error;

use super::options::{DistractorOptions, RoomOptions, RoomsDistractorOptions, RoomsOptions};
use super::synth::{Actions, Generated, Kinds};
use super::{Described, Instruction, Layout, MIDDLE, Maker, Task};
use crate::cell::{Cell, Color, Kind};
use crate::options::{CommonOptions, level_options};
use crate::world::Unmade;

/// Go to the red ball; with `GRAY` all else is gray.
#[derive(Debug)]
pub struct GoToRedBall<const GRAY: bool>(usize);

impl<const GRAY: bool> Task for GoToRedBall<GRAY> {
    type Options = DistractorOptions;

    fn new(options: &DistractorOptions) -> Result<(Self, Layout), Error> {
        Ok((Self(options.num_dists), Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        let (ball, _) = maker.add_object([0; 2], Some(Kind::Ball), Some(Color::Red))?;
        for (object, place) in maker.add_distractors(None, self.0, false)? {
            if GRAY {
                maker.world.set(place, Cell { color: Color::Gray, ..object });
            }
        }
        maker.require_reachable()?;
        Ok(Instruction::GoTo(Described::like(ball)))
    }
}

/// Go to the only object, a red ball.
#[derive(Debug)]
pub struct GoToRedBallAlone;

impl Task for GoToRedBallAlone {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::one(8)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        GoToRedBall::<false>(0).make(maker)
    }
}

/// Go to the only object.
#[derive(Debug)]
pub struct GoToObj;

impl Task for GoToObj {
    type Options = RoomOptions;

    fn new(options: &RoomOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        let objects = maker.add_distractors(None, 1, true)?;
        Ok(Instruction::GoTo(Described::like(objects[0].0)))
    }
}

level_options! {
    /// Keywords of `GoToLocal`.
    pub struct GoToLocalOptions {
        /// Columns and rows of the room, walls included.
        room_size: i32 = 8,
        /// Number of objects.
        num_dists: usize = 8,
    }
}

/// Go to one of several objects.
#[derive(Debug)]
pub struct GoToLocal(usize);

impl Task for GoToLocal {
    type Options = GoToLocalOptions;

    fn new(options: &GoToLocalOptions) -> Result<(Self, Layout), Error> {
        Ok((Self(options.num_dists), Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        let objects = maker.add_distractors(None, self.0, false)?;
        maker.require_reachable()?;
        Ok(Instruction::GoTo(Described::like(maker.element(&objects)?.0)))
    }
}

level_options! {
    /// Keywords of `GoTo`.
    pub struct GoToOptions {
        /// Columns and rows of a room, walls included.
        room_size: i32 = 8,
        /// Rows of rooms.
        num_rows: i32 = 3,
        /// Columns of rooms.
        num_cols: i32 = 3,
        /// Number of objects.
        num_dists: usize = 18,
        /// Whether all doors are open.
        doors_open: bool,
    }
}

/// Go to an object in a maze of rooms.
#[derive(Debug)]
pub struct GoTo {
    count: usize,
    doors_open: bool,
}

impl Task for GoTo {
    type Options = GoToOptions;

    fn new(options: &GoToOptions) -> Result<(Self, Layout), Error> {
        let layout = Layout::new(options.room_size, [options.num_cols, options.num_rows]);
        Ok((Self { count: options.num_dists, doors_open: options.doors_open }, layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        maker.connect_all()?;
        let objects = maker.add_distractors(None, self.count, false)?;
        maker.require_reachable()?;
        let (object, _) = maker.element(&objects)?;
        if self.doors_open {
            maker.open_all_doors();
        }
        Ok(Instruction::GoTo(Described::like(object)))
    }
}

/// Go to an object in a locked room.
#[derive(Debug)]
pub struct GoToImpUnlock;

impl Task for GoToImpUnlock {
    type Options = RoomsOptions;

    fn new(options: &RoomsOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let (locked, _) = maker.lock_room()?;
        maker.connect_all()?;
        maker.add_distractors_to_each_room(2)?;
        maker.place_agent_outside(Some(locked))?;
        maker.require_reachable()?;
        let objects = maker.add_distractors(Some(locked), 1, false)?;
        Ok(Instruction::GoTo(Described::like(objects[0].0)))
    }
}

/// Go to several objects.
#[derive(Debug)]
pub struct GoToSeq(Generated);

impl Task for GoToSeq {
    type Options = RoomsDistractorOptions;
    const MISSION: usize = super::synth::MISSION;

    fn new(options: &RoomsDistractorOptions) -> Result<(Self, Layout), Error> {
        let generated = Generated {
            num_dists: options.num_dists,
            locked_room_prob: 0.0,
            locations: false,
            unblocking: false,
            implicit_unlock: true,
            actions: Actions::GoTo,
            kinds: Kinds::All,
        };
        Ok((Self(generated), options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        self.0.make(maker)
    }
}

/// Go to the red or the blue ball, of which there is one.
#[derive(Debug)]
pub struct GoToRedBlueBall(usize);

impl Task for GoToRedBlueBall {
    type Options = DistractorOptions;

    fn new(options: &DistractorOptions) -> Result<(Self, Layout), Error> {
        Ok((Self(options.num_dists), Layout::one(options.room_size)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        let colors = [Color::Red, Color::Blue];
        let objects = maker.add_distractors(None, self.0, false)?;
        let is_other = |object: Cell| object.kind == Kind::Ball && colors.contains(&object.color);
        if objects.iter().any(|(object, _)| is_other(*object)) {
            return Err(Unmade::Again("there is another blue or red ball".to_owned()));
        }
        let color = maker.element(&colors)?;
        let (ball, _) = maker.add_object([0; 2], Some(Kind::Ball), Some(color))?;
        maker.require_reachable()?;
        Ok(Instruction::GoTo(Described::like(ball)))
    }
}

/// Go to one of the four doors of the middle room; with `OBJECTS`, to one of these or to an object.
#[derive(Debug)]
pub struct GoToDoor<const OBJECTS: bool>;

impl<const OBJECTS: bool> Task for GoToDoor<OBJECTS> {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::nine(if OBJECTS { 8 } else { 7 })))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let mut objects = Vec::new();
        if OBJECTS {
            maker.place_agent(Some(MIDDLE))?;
            let added = maker.add_distractors(Some(MIDDLE), 8, false)?;
            objects.extend(added.into_iter().map(|(object, _)| object));
        }
        for _ in 0..4 {
            let door = maker.add_door(MIDDLE, None, None, None)?;
            objects.push(Cell::new(Kind::Door, door.color));
        }
        if OBJECTS {
            maker.require_reachable()?;
        } else {
            maker.place_agent(Some(MIDDLE))?;
        }
        Ok(Instruction::GoTo(Described::like(maker.element(&objects)?)))
    }
}
