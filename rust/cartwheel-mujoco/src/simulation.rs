//! `Simulation`: any model, without a task. Its observation is a list of arrays of MuJoCo's, one after
//! the other; its caller computes rewards and flags.
//!
//! | | |
//! |---|---|
//! | action | `data.ctrl`, within the control ranges of the actuators; `float32[nu]` |
//! | observation | the fields, in the order in which they are named; `float64` |
//! | reward | 0 |
//! | terminates | never |

use cartwheel::{Error, Failure, FloatsRef, Rng};

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
    /// The observed fields, and behind them those that only the owner reads. States have all of them.
    fields: Vec<Observed>,
    /// Number of the observed ones.
    num_observed: usize,
    /// Whether the owner completes resets: it writes fields, and sets the parameter `written`. States do
    /// not depend on it.
    #[serde(rename = "_external_resets")]
    external_resets: bool,
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
        options.fields.iter().take(options.num_observed).map(|field| field.1).sum()
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

    fn reset(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let (scale, velocities) = Self::reset_noise(options);
        if !options.external_resets {
            stepper.reset(scale, velocities, rng)
        } else if scale == 0.0 {
            stepper.place_exactly()
        } else {
            stepper.place(scale, velocities, rng)
        }
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

    fn observe(&self, options: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        for field in stepper.observed().take(options.num_observed) {
            observation.push(field);
        }
    }
}
