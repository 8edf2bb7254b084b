//! The observations of `Humanoid` and `HumanoidStandup`, and the keywords that choose their parts:
//! positions, velocities, and arrays of the bodies.

use cartwheel::Error;

use crate::model::{Model, Sizes};
use crate::observation::Observation;
use crate::stepper::Stepper;

/// Velocities of a free joint, which no actuator moves.
const FREE: usize = 6;

/// The arrays of an observation.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "keywords that are independent")]
pub(crate) struct Parts {
    /// The position in the plane, the first two positions.
    pub(crate) positions: bool,
    pub(crate) cinert: bool,
    pub(crate) cvel: bool,
    pub(crate) qfrc_actuator: bool,
    pub(crate) cfrc_ext: bool,
}

impl Parts {
    /// Number of elements. The world is a body without values.
    pub(crate) fn len(self, Sizes { nq, nv, nbody, .. }: Sizes) -> usize {
        let part = |is_there: bool, len: usize| if is_there { len } else { 0 };
        nq - 2
            + part(self.positions, 2)
            + nv
            + part(self.cinert, 10 * (nbody - 1))
            + part(self.cvel, 6 * (nbody - 1))
            + part(self.qfrc_actuator, nv - FREE)
            + part(self.cfrc_ext, 6 * (nbody - 1))
    }

    pub(crate) fn observe(self, stepper: &Stepper, mut observation: Observation<'_>) {
        observation.push(&stepper.qpos()[if self.positions { 0 } else { 2 }..]);
        observation.push(stepper.qvel());
        if self.cinert {
            observation.push(&stepper.cinert[10..]);
        }
        if self.cvel {
            observation.push(&stepper.cvel[6..]);
        }
        if self.qfrc_actuator {
            observation.push(&stepper.qfrc_actuator[FREE..]);
        }
        if self.cfrc_ext {
            observation.push(&stepper.cfrc_ext[6..]);
        }
    }
}

/// Makes the keywords of an environment: its own ones, and those that choose the parts of its
/// observations.
macro_rules! body_options {
    ($($own:tt)*) => {
        use $crate::body_observation::Parts;
        use $crate::options::Fixed;

        $crate::options::options! {
            $($own)*
            /// Whether observations are without the position in the plane.
            _exclude_current_positions_from_observation =
                exclude_current_positions_from_observation: Fixed<bool> = true,
            /// Whether observations have the inertias of the bodies.
            _include_cinert_in_observation = include_cinert_in_observation: Fixed<bool> = true,
            /// Whether observations have the velocities of the bodies.
            _include_cvel_in_observation = include_cvel_in_observation: Fixed<bool> = true,
            /// Whether observations have the forces of the actuators.
            _include_qfrc_actuator_in_observation =
                include_qfrc_actuator_in_observation: Fixed<bool> = true,
            /// Whether observations have the contact forces.
            _include_cfrc_ext_in_observation = include_cfrc_ext_in_observation: Fixed<bool> = true,
        }

        impl Options {
            /// The parts of an observation.
            fn parts(&self) -> Parts {
                Parts {
                    positions: !*self.exclude_current_positions_from_observation,
                    cinert: *self.include_cinert_in_observation,
                    cvel: *self.include_cvel_in_observation,
                    qfrc_actuator: *self.include_qfrc_actuator_in_observation,
                    cfrc_ext: *self.include_cfrc_ext_in_observation,
                }
            }
        }
    };
}

pub(crate) use body_options;

/// Refuses models that are not bodies with a free joint.
pub(crate) fn check_body(model: &Model) -> Result<(), Error> {
    let Sizes { nq, nv, nbody, .. } = model.sizes;
    let fits = nq >= 3 && nv >= FREE && nbody >= 1;
    model.check_sizes(fits, "three positions, six velocities and a body")
}
