//! The eleven environments have one form: a simulation, and a robot that is rewarded.

use std::fmt::Debug;
use std::sync::Arc;

use crate::model::{Model, Observed, Sizes};
use crate::observation::Observation;
use crate::options::RobotOptions;
use crate::registry::SharedModel;
use crate::stepper::{Stepper, VelocityNoise};
use cartwheel::{
    DType, Env, Error, Failure, Flat, Floats, FloatsRef, Info, NoOptions, Parameter, Rng, Space,
    Spaces, State, Transition,
};

/// The differences between the environments: observations, rewards, resets and infos.
pub trait Robot: Debug + Sized + Send + 'static {
    /// Keywords.
    type Options: RobotOptions;
    /// The info.
    type Info: RobotInfo;

    /// Number of first positions that an observation leaves out.
    fn hidden(options: &Self::Options) -> usize {
        let _ = options;
        0
    }

    /// Number of elements of an observation; by default it has positions and velocities.
    fn observation_len(options: &Self::Options, Sizes { nq, nv, .. }: Sizes) -> usize {
        nq + nv - Self::hidden(options)
    }

    /// The arrays that [`Robot::observe`] finds in `Stepper::observed`, besides those that every row
    /// has by name.
    fn observed(options: &Self::Options) -> &[Observed] {
        let _ = options;
        &[]
    }

    /// A robot in this simulation.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for options or a model with which the equations cannot work.
    fn new(options: &Self::Options, model: &Model) -> Result<Self, Error>;

    /// The scale of the noise of initial positions, and how that of velocities is distributed.
    fn reset_noise(options: &Self::Options) -> (f64, VelocityNoise) {
        let _ = options;
        (0.0, VelocityNoise::Uniform)
    }

    /// `reset_model`; by default it adds noise to the initial state.
    ///
    /// # Errors
    ///
    /// MuJoCo's.
    fn reset(
        &self,
        options: &Self::Options,
        stepper: &mut Stepper,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let (scale, velocities) = Self::reset_noise(options);
        stepper.reset(scale, velocities, rng)
    }

    /// `_get_reset_info`; by default it is empty.
    fn reset_info(&self, stepper: &Stepper) -> Self::Info {
        let _ = stepper;
        Self::Info::default()
    }

    /// `step`.
    ///
    /// # Errors
    ///
    /// MuJoCo's.
    fn step(
        &self,
        options: &Self::Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<Self::Info>, Failure>;

    /// `_get_obs`; by default the positions that are not hidden, and the velocities.
    fn observe(
        &self,
        options: &Self::Options,
        stepper: &Stepper,
        mut observation: Observation<'_>,
    ) {
        observation.push(&stepper.qpos()[Self::hidden(options)..]);
        observation.push(stepper.qvel());
    }
}

/// Results of a step, apart from the observation.
#[derive(Debug)]
pub struct Step<I> {
    /// The reward.
    pub reward: f64,
    /// Whether the episode has ended.
    pub terminated: bool,
    /// The info.
    pub info: I,
}

/// The info of a robot, which also says what MuJoCo warned of.
pub trait RobotInfo: Info + State + Default + Clone + Debug + Send {
    /// Sets the warning.
    fn set_warning(&mut self, warning: Option<String>);
}

/// An environment of MuJoCo.
#[derive(Debug)]
pub struct MujocoEnv<R: Robot> {
    robot: R,
    /// The keywords, with weights that may have changed since.
    options: R::Options,
    /// The info of the step or the reset before.
    info: R::Info,
    stepper: Stepper,
}

impl<R: Robot> Env for MujocoEnv<R> {
    type Options = R::Options;
    type ResetOptions = NoOptions;
    type Action = Floats;
    type Observation = Flat<f64>;
    type Info = R::Info;
    type Shared = SharedModel;

    fn spaces(options: &R::Options, SharedModel(model): &SharedModel) -> Spaces {
        let (low, high) = model.action_bounds.clone();
        let length = R::observation_len(options, model.sizes);
        Spaces {
            observation: Space::shaped_box(DType::F64, &[length], f64::NEG_INFINITY, f64::INFINITY),
            action: Space::float_box(&low, &high),
        }
    }

    fn new(options: &R::Options, shared: &Arc<SharedModel>) -> Result<Self, Error> {
        let stepper = Stepper::new(&shared.0, R::observed(options))?;
        let robot = R::new(options, &shared.0)?;
        Ok(Self { info: robot.reset_info(&stepper), options: options.clone(), robot, stepper })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.robot.reset(&self.options, &mut self.stepper, rng)?;
        self.info = self.robot.reset_info(&self.stepper);
        self.info.set_warning(self.stepper.take_warning());
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: FloatsRef<'_>, _: &mut Rng) -> Result<Transition, Failure> {
        let stepped = self.robot.step(&self.options, &mut self.stepper, action)?;
        let Step { reward, terminated, info } = stepped;
        self.info = info;
        self.info.set_warning(self.stepper.take_warning());
        Ok(Transition { reward, terminated, truncated: false })
    }

    #[inline]
    fn step_before(
        &mut self,
        action: FloatsRef<'_>,
        rng: &mut Rng,
        next: Option<&Self>,
    ) -> Result<Transition, Failure> {
        self.stepper.step_follows(next.map(|next| &next.stepper));
        self.step(action, rng)
    }

    #[inline]
    fn observe(&self, observation: &mut [f64]) {
        self.robot.observe(&self.options, &self.stepper, Observation(observation));
    }

    #[inline]
    fn info(&self) -> R::Info {
        self.info.clone()
    }

    const SAVES: bool = true;

    fn save(&self, state: &mut Vec<u8>) {
        self.stepper.save(state);
        self.options.save(state);
        self.info.save(state);
    }

    fn load(&mut self, state: &[u8]) -> Result<(), Failure> {
        let rest = &mut { state };
        self.stepper.load(rest)?;
        self.options.load(rest)?;
        self.info = State::load(rest)?;
        cartwheel::__private::all_read(rest)
    }

    fn parameters() -> &'static [&'static str] {
        R::Options::PARAMETERS
    }

    fn parameter(&self, name: &str) -> Option<&dyn Parameter> {
        self.options.parameter(name).or_else(|| self.stepper.parameter(name))
    }

    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter> {
        let own = self.options.parameter_mut(name);
        own.or_else(|| self.stepper.parameter_mut(name))
    }

    fn parameters_changed(&mut self) {
        self.stepper.parameters_changed();
    }
}

/// Makes the info of an environment: numbers that it may lack, and what MuJoCo warned of.
macro_rules! info {
    (
        $(#[$meta:meta])*
        $info:ident { $($(#[$key_meta:meta])* $key:ident: $type:ty,)* }
    ) => {
        cartwheel::info! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $info {
                $($(#[$key_meta])* $key: Option<$type>,)*
                /// MuJoCo's warning.
                mujoco_warning: Option<String>,
            }
        }

        impl $crate::env::RobotInfo for $info {
            fn set_warning(&mut self, warning: Option<String>) {
                self.mujoco_warning = warning;
            }
        }

        cartwheel::state! { impl State for $info { $($key,)* mujoco_warning } }
    };
}

pub(crate) use info;
