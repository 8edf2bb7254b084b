//! `Simulation`: any model, without a task. Its observation is a list of arrays of MuJoCo's, one after
//! the other; its caller computes rewards and flags.
//!
//! | | |
//! |---|---|
//! | action | `data.ctrl`, within the control ranges of the actuators; `float32[nu]` |
//! | observation | the fields, in the order in which they are named; `float64` |
//! | reward | 0 |
//! | terminates | never |

use cartwheel::{Error, Failure, FloatsRef};

use crate::env::{Robot, Step, info};
use crate::model::{Model, Observed, Sizes};
use crate::observation::Observation;
use crate::options::{NoiseScale, options};
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Scale of the noise of initial positions (uniform) and velocities.
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.0,
    /// Whether the noise of velocities is normal.
    _normal_velocities = normal_velocities: bool = false,
    ;
    /// The observed fields.
    fields: Vec<Observed>,
}

info! {
    /// Infos of MuJoCo.
    SimulationInfo {}
}

/// A simulation.
#[derive(Debug)]
pub struct Simulation;

impl Robot for Simulation {
    type Options = Options;
    type Info = SimulationInfo;

    fn observation_len(options: &Options, _: Sizes) -> usize {
        options.fields.iter().map(|field| field.1).sum()
    }

    fn observed(options: &Options) -> &[Observed] {
        &options.fields
    }

    fn new(_: &Options, _: &Model) -> Result<Self, Error> {
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        let normal = options.normal_velocities;
        let velocities = if normal { VelocityNoise::Normal } else { VelocityNoise::Uniform };
        (*options.reset_noise_scale, velocities)
    }

    fn step(
        &self,
        _: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<SimulationInfo>, Failure> {
        stepper.step(action)?;
        Ok(Step { reward: 0.0, terminated: false, info: self.reset_info(stepper) })
    }

    fn observe(&self, _: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        for field in stepper.observed() {
            observation.push(field);
        }
    }
}
