//! Pick up an object (`envs/babyai/pickup.py`).

use cartwheel::Error;

use super::options::RoomsOptions;
use super::synth::{Actions, Generated, Kinds};
use super::{Described, Instruction, Layout, MIDDLE, Maker, Task};
use crate::options::{CommonOptions, level_options};
use crate::world::Unmade;

/// Pick up an object in a maze of rooms; with `BLOCKED`, others are in the way of some.
#[derive(Debug)]
pub struct Pickup<const BLOCKED: bool>;

impl<const BLOCKED: bool> Task for Pickup<BLOCKED> {
    type Options = RoomsOptions;

    fn new(options: &RoomsOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, options.layout()))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        maker.place_agent(None)?;
        maker.connect_all()?;
        let objects = maker.add_distractors(None, if BLOCKED { 20 } else { 18 }, false)?;
        if !BLOCKED {
            maker.require_reachable()?;
        } else if maker.are_objects_reachable() {
            return Err(Unmade::Again("every object can be reached".to_owned()));
        }
        Ok(Instruction::pickup(Described::like(maker.element(&objects)?.0)))
    }
}

/// Pick up an object that is described by its place.
#[derive(Debug)]
pub struct PickupLoc;

impl Task for PickupLoc {
    type Options = CommonOptions;
    const MISSION: usize = super::synth::MISSION;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout::one(8)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let generated = Generated {
            num_dists: 8,
            locked_room_prob: 0.0,
            locations: true,
            unblocking: false,
            implicit_unlock: true,
            actions: Actions::Pickup,
            kinds: Kinds::Action,
        };
        generated.make(maker)
    }
}

level_options! {
    /// Keywords of `PickupDist`.
    pub struct PickupDistOptions {
        /// Whether another object ends the episode.
        debug: bool,
    }
}

/// Pick up one of five objects, which is described by its kind, its color, or both.
#[derive(Debug)]
pub struct PickupDist {
    strict: bool,
}

impl Task for PickupDist {
    type Options = PickupDistOptions;

    fn new(options: &PickupDistOptions) -> Result<(Self, Layout), Error> {
        Ok((Self { strict: options.debug }, Layout::one(7)))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let objects = maker.add_distractors(None, 5, true)?;
        maker.place_agent(Some([0; 2]))?;
        let mut object = Described::like(maker.element(&objects)?.0);
        // "type", "color", "both"
        match maker.integer(3)? {
            0 => object.color = None,
            1 => object.kind = None,
            _ => {}
        }
        Ok(Instruction::Pickup { object, strict: self.strict })
    }
}

/// Pick up an object in the room above.
#[derive(Debug)]
pub struct PickupAbove;

impl Task for PickupAbove {
    type Options = CommonOptions;

    fn new(_: &CommonOptions) -> Result<(Self, Layout), Error> {
        Ok((Self, Layout { max_steps: Some(8 * 6 * 6), ..Layout::nine(6) }))
    }

    fn make(&self, maker: &mut Maker<'_>) -> Result<Instruction, Unmade> {
        let (object, _) = maker.add_object([1, 0], None, None)?;
        maker.add_door(MIDDLE, Some(3), None, Some(false))?;
        maker.place_agent(Some(MIDDLE))?;
        maker.connect_all()?;
        Ok(Instruction::pickup(Described::like(object)))
    }
}
