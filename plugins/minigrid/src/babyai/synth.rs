//! Random instructions (`envs/babyai/core/levelgen.py`, `envs/babyai/synth.py`).

use cartwheel::{Error, Failure};

use super::options::RoomsDistractorOptions;
use super::{Described, Instruction, Layout, Location, Maker, Task};
use crate::cell::{Color, Kind};
use crate::options::level_options;
use crate::world::{MAX_TRIES, Place, Unmade};

/// The most letters of a mission of four actions.
pub(super) const MISSION: usize = 340;

/// Tries to describe an object that exists.
const DESCRIBING: u32 = 100;

/// The kinds of objects, in the order of `OBJ_TYPES`; the first three are not doors.
const KINDS: [Kind; 4] = [Kind::Box, Kind::Ball, Kind::Key, Kind::Door];

/// The actions that instructions consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actions {
    All,
    GoTo,
    Pickup,
}

/// The instructions that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Only actions.
    Action,
    /// Actions, or two of them.
    ActionAnd,
    /// Also one after the other.
    All,
}

/// A generator of levels (`LevelGen`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Generated {
    pub(super) num_dists: usize,
    pub(super) locked_room_prob: f64,
    /// Whether objects are described by their places, too.
    pub(super) locations: bool,
    /// Whether objects may have to be moved out of the way.
    pub(super) unblocking: bool,
    /// Whether an instruction may need a locked door to be opened first.
    pub(super) implicit_unlock: bool,
    pub(super) actions: Actions,
    pub(super) kinds: Kinds,
}

impl Generated {
    pub(super) fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.keeps_keys = self.unblocking;
        let is_locked = maker.rng.uniform(0.0, 1.0) < self.locked_room_prob;
        let locked = if is_locked { Some(add_locked_room(maker)?) } else { None };
        maker.connect_all()?;
        maker.add_distractors(None, self.num_dists, false)?;
        maker.place_agent_outside(locked)?;
        if !self.unblocking {
            maker.require_reachable()?;
        }
        self.instruction(maker, locked, self.kinds)
    }

    /// A random instruction (`rand_instr`).
    fn instruction(
        &self,
        maker: &mut Maker<'_>,
        locked: Option<Place>,
        kinds: Kinds,
    ) -> Result<Instruction, Unmade> {
        let choices = match kinds {
            Kinds::Action => 1,
            Kinds::ActionAnd => 2,
            Kinds::All => 3,
        };
        match maker.integer(choices)? {
            0 => self.action(maker, locked),
            1 => {
                let parts = [Kinds::Action, Kinds::Action];
                Ok(Instruction::And(Box::new(self.both(maker, locked, parts)?)))
            }
            _ => {
                let parts = [Kinds::ActionAnd, Kinds::ActionAnd];
                let parts = Box::new(self.both(maker, locked, parts)?);
                let is_before = maker.element(&[true, false])?;
                Ok(if is_before { Instruction::Before(parts) } else { Instruction::After(parts) })
            }
        }
    }

    fn both(
        &self,
        maker: &mut Maker<'_>,
        locked: Option<Place>,
        [first, second]: [Kinds; 2],
    ) -> Result<[Instruction; 2], Unmade> {
        Ok([self.instruction(maker, locked, first)?, self.instruction(maker, locked, second)?])
    }

    fn action(&self, maker: &mut Maker<'_>, locked: Option<Place>) -> Result<Instruction, Unmade> {
        // "goto", "pickup", "open", "putnext"
        let action = match self.actions {
            Actions::All => maker.integer(4)?,
            Actions::GoTo => maker.integer(1)?,
            Actions::Pickup => maker.integer(1)? + 1,
        };
        let mut object = |kinds: &[Kind]| self.object(maker, locked, kinds);
        Ok(match action {
            0 => Instruction::GoTo(object(&KINDS)?),
            1 => Instruction::pickup(object(&KINDS[..3])?),
            2 => Instruction::open(object(&KINDS[3..])?),
            _ => Instruction::PutNext { moved: object(&KINDS[..3])?, fixed: object(&KINDS)? },
        })
    }

    /// A random description of an object that exists (`rand_obj`).
    fn object(
        &self,
        maker: &mut Maker<'_>,
        locked: Option<Place>,
        kinds: &[Kind],
    ) -> Result<Described, Unmade> {
        let mut colors = vec![None];
        colors.extend(Color::SORTED.map(Some));
        for _ in 0..=DESCRIBING {
            let color = maker.element(&colors)?;
            let kind = Some(maker.element(kinds)?);
            let has_location = self.locations && maker.coin()?;
            let location = if has_location { Some(maker.element(&Location::ALL)?) } else { None };
            let described = Described { kind, color, location };
            let found = described.find(maker.world, &maker.rooms);
            let is_hidden =
                |place: &Place| locked.is_some_and(|room| maker.rooms.contains(room, *place));
            let is_out_of_reach =
                !self.implicit_unlock && locked.is_some() && found.places.iter().all(is_hidden);
            if !found.is_empty() && !is_out_of_reach {
                return Ok(described);
            }
        }
        Err(Unmade::Again("no object was described".to_owned()))
    }
}

/// Locks a room, and puts its key into another (`add_locked_room`).
fn add_locked_room(maker: &mut Maker<'_>) -> Result<Place, Unmade> {
    let never = || Unmade::from(Failure::new("a locked room needs a second one"));
    let (mut locked, mut door) = (None, None);
    for _ in 0..MAX_TRIES {
        let room = maker.room()?;
        let side = usize::try_from(maker.integer(4)?)?;
        if maker.rooms.rooms[maker.rooms.number(room)?].has_neighbor(side) {
            door = Some(maker.add_door(room, Some(side), None, Some(true))?);
            locked = Some(room);
            break;
        }
    }
    let (locked, door) = (locked.ok_or_else(never)?, door.ok_or_else(never)?);
    for _ in 0..MAX_TRIES {
        let room = maker.room()?;
        if room != locked {
            maker.add_object(room, Some(Kind::Key), Some(door.color))?;
            return Ok(locked);
        }
    }
    Err(never())
}

/// The generator with all of its abilities.
const BOSS: Generated = Generated {
    num_dists: 18,
    locked_room_prob: 0.5,
    locations: true,
    unblocking: true,
    implicit_unlock: true,
    actions: Actions::All,
    kinds: Kinds::All,
};

/// One action in a maze of rooms.
#[derive(Debug)]
pub struct Synth(usize);

impl Task for Synth {
    type Options = RoomsDistractorOptions;
    const MISSION: usize = MISSION;

    fn new(options: &RoomsDistractorOptions) -> Result<(Self, Layout), Error> {
        Ok((Self(options.num_dists), options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let rules = Generated {
            num_dists: self.0,
            locations: false,
            implicit_unlock: false,
            kinds: Kinds::Action,
            ..BOSS
        };
        rules.make(maker)
    }
}

level_options! {
    /// Keywords of generated levels.
    pub struct GeneratedOptions {
        /// Columns and rows of a room, walls included; `None` for the level's own.
        room_size: Option<i32>,
        /// Rows of rooms; `None` for the level's own.
        num_rows: Option<i32>,
        /// Columns of rooms; `None` for the level's own.
        num_cols: Option<i32>,
        /// Number of distractors; `None` for the level's own.
        num_dists: Option<usize>,
    }
}

/// The levels `SynthLoc`, `SynthSeq`, `MiniBossLevel`, `BossLevel` and `BossLevelNoUnlock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Generator {
    SynthLoc,
    SynthSeq,
    MiniBoss,
    Boss,
    BossNoUnlock,
}

impl Generator {
    const ALL: [Self; 5] =
        [Self::SynthLoc, Self::SynthSeq, Self::MiniBoss, Self::Boss, Self::BossNoUnlock];

    fn rules(self) -> Generated {
        match self {
            Self::SynthLoc => Generated { kinds: Kinds::Action, implicit_unlock: false, ..BOSS },
            Self::SynthSeq => Generated { implicit_unlock: false, ..BOSS },
            Self::MiniBoss => Generated { num_dists: 7, locked_room_prob: 0.25, ..BOSS },
            Self::Boss => BOSS,
            Self::BossNoUnlock => {
                Generated { locked_room_prob: 0.0, implicit_unlock: false, ..BOSS }
            }
        }
    }
}

/// A level of a generator, by its number.
#[derive(Debug)]
pub struct Synthesized<const GENERATOR: u8>(Generated);

impl<const GENERATOR: u8> Task for Synthesized<GENERATOR> {
    type Options = GeneratedOptions;
    const MISSION: usize = MISSION;

    fn new(options: &GeneratedOptions) -> Result<(Self, Layout), Error> {
        let generator = Generator::ALL[usize::from(GENERATOR)];
        let (size, rooms) = if generator == Generator::MiniBoss { (5, 2) } else { (8, 3) };
        let rooms = [options.num_cols, options.num_rows].map(|given| given.unwrap_or(rooms));
        let layout = Layout::new(options.room_size.unwrap_or(size), rooms);
        let rules = generator.rules();
        let num_dists = options.num_dists.unwrap_or(rules.num_dists);
        Ok((Self(Generated { num_dists, ..rules }), layout))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        self.0.make(maker)
    }
}
