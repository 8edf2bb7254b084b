//! The eleven environments have one form: a simulation, and a robot that is rewarded.

use std::fmt::Debug;
use std::sync::Arc;

use cartwheel::{
    Bounds, DType, Env, Error, Failure, Flat, Info, NoOptions, Parameter, Rng, Space, Spaces,
    Transition,
};
use serde::de::DeserializeOwned;

use crate::model::Sizes;
use crate::observation::Observation;
use crate::registry::{NamesModel, SharedModel};
use crate::stepper::Stepper;

/// What differs between the environments: observations, rewards, resets and infos.
pub trait Robot: Debug + Sized + Send + 'static {
    /// Keywords.
    type Options: DeserializeOwned + Default + Debug + Send + Sync + NamesModel + Weights + Clone;
    /// The info.
    type Info: Info;

    /// Number of elements of an observation.
    fn observation_len(options: &Self::Options, sizes: Sizes) -> usize;

    /// A robot in this simulation.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for options or a model with which the equations cannot work.
    fn new(options: &Self::Options, stepper: &Stepper) -> Result<Self, Error>;

    /// `reset_model`.
    ///
    /// # Errors
    ///
    /// MuJoCo's.
    fn reset(&mut self, stepper: &mut Stepper, rng: &mut Rng) -> Result<(), Failure>;

    /// `step`.
    ///
    /// # Errors
    ///
    /// MuJoCo's.
    fn step(&mut self, stepper: &mut Stepper, action: &[f32]) -> Result<Transition, Failure>;

    /// `_get_obs`.
    fn observe(&self, stepper: &Stepper, observation: Observation<'_>);

    /// The info of the step or the reset before.
    fn info(&self, stepper: &Stepper) -> Self::Info;

    /// Appends what a state has besides the simulation.
    fn save(&self, state: &mut Vec<u8>);

    /// Takes it off the front.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for bytes that are no such state.
    fn load(&mut self, state: &mut &[u8]) -> Result<(), Failure>;

    /// The names of all parameters, those of the simulation included.
    fn parameters() -> &'static [&'static str];

    /// A parameter of the robot.
    fn parameter(&self, name: &str) -> Option<&dyn Parameter>;

    /// A parameter of the robot, for setting it.
    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter>;
}

/// Options whose weights are saved with a state.
pub trait Weights {
    /// Appends them.
    fn save(&self, state: &mut Vec<u8>);

    /// Takes them off the front.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for bytes that are none.
    fn load(&mut self, state: &mut &[u8]) -> Result<(), Failure>;
}

/// An environment of MuJoCo.
#[derive(Debug)]
pub struct MujocoEnv<R> {
    robot: R,
    stepper: Stepper,
}

impl<R: Robot> Env for MujocoEnv<R> {
    type Options = R::Options;
    type ResetOptions = NoOptions;
    type Action = Flat<f32>;
    type Observation = Flat<f64>;
    type Info = R::Info;
    type Shared = SharedModel;

    fn spaces(options: &R::Options, SharedModel(model): &SharedModel) -> Spaces {
        let (low, high) = model.action_bounds.clone();
        Spaces {
            observation: Space::Box {
                dtype: DType::F64,
                shape: vec![R::observation_len(options, model.sizes)],
                low: Bounds::All(f64::NEG_INFINITY),
                high: Bounds::All(f64::INFINITY),
            },
            action: Space::float_box(&low, &high),
        }
    }

    fn new(options: &R::Options, shared: &Arc<SharedModel>) -> Result<Self, Error> {
        let stepper = Stepper::new(&shared.0)?;
        Ok(Self { robot: R::new(options, &stepper)?, stepper })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.robot.reset(&mut self.stepper, rng)
    }

    #[inline]
    fn step(&mut self, action: &[f32], _: &mut Rng) -> Result<Transition, Failure> {
        self.robot.step(&mut self.stepper, action)
    }

    #[inline]
    fn observe(&self, observation: &mut [f64]) {
        self.robot.observe(&self.stepper, Observation(observation));
    }

    #[inline]
    fn info(&self) -> R::Info {
        self.robot.info(&self.stepper)
    }

    const SAVES: bool = true;

    fn save(&self, state: &mut Vec<u8>) {
        self.stepper.save(state);
        self.robot.save(state);
    }

    fn load(&mut self, state: &[u8]) -> Result<(), Failure> {
        let rest = &mut { state };
        self.stepper.load(rest)?;
        self.robot.load(rest)?;
        if !rest.is_empty() {
            return Err(Failure::new(format!("the state has {} bytes too many", rest.len())));
        }
        Ok(())
    }

    fn parameters() -> &'static [&'static str] {
        R::parameters()
    }

    fn parameter(&self, name: &str) -> Option<&dyn Parameter> {
        self.robot.parameter(name).or_else(|| self.stepper.parameter(name))
    }

    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter> {
        let own = self.robot.parameter_mut(name);
        own.or_else(|| self.stepper.parameter_mut(name))
    }

    fn parameters_changed(&mut self) {
        self.stepper.parameters_changed();
    }
}

/// What a [`Robot`] saves and names: the fields that change, besides its options, and its options by
/// Gymnasium's names of the attributes.
macro_rules! robot {
    (state { $($state:ident),* $(,)? } parameters { $($name:ident: $option:ident),* $(,)? }) => {
        fn save(&self, state: &mut Vec<u8>) {
            $crate::env::Weights::save(&self.options, state);
            $(cartwheel::State::save(&self.$state, state);)*
        }

        fn load(&mut self, state: &mut &[u8]) -> Result<(), cartwheel::Failure> {
            $crate::env::Weights::load(&mut self.options, state)?;
            $(self.$state = cartwheel::State::load(state)?;)*
            Ok(())
        }

        fn parameters() -> &'static [&'static str] {
            &[
                $(stringify!($name),)*
                "simulation", "frame_skip", "timestep", "init_qpos", "init_qvel", "qpos", "qvel",
                "state_vector", "ctrl",
            ]
        }

        fn parameter(&self, name: &str) -> Option<&dyn cartwheel::Parameter> {
            Some(match name {
                $(stringify!($name) => &self.options.$option,)*
                _ => return None,
            })
        }

        fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn cartwheel::Parameter> {
            Some(match name {
                $(stringify!($name) => &mut self.options.$option,)*
                _ => return None,
            })
        }
    };
}

pub(crate) use robot;
