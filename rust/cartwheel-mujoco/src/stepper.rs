//! The stepper: the simulation of one row, in the order of calls of Gymnasium's `MujocoEnv`.
//!
//! Source: Gymnasium 1.4.0, `mujoco/mujoco_env.py`.
//!
//! # Invariants
//!
//! 1. **Rows** are as [`RowParts::new`](crate::RowParts::new) requires. `keep_alive` is dropped last.
//! 2. **Models.** The parameter `written` is set to [`Fields::Constants`] only in rows whose model no other
//!    row shares; `cartwheel.mujoco.resets` sets it, and users cannot.
#![expect(unsafe_code, reason = "takes addresses from `RowParts`, see the invariants")]

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use cartwheel::{Error, Failure, FloatsRef, Parameter, Rng, State};

use crate::field::{Field, Integers};
use crate::guard::guarded;
use crate::library::Physics;
use crate::memory::Memory;
use crate::model::{Guarded, Observed, RowParts, Sizes, check_frame_skip, check_timestep};
use crate::numeric::{difference, norm};
use crate::parameters::{
    Coordinates, Fields, FrameSkip, Number, Numbers, Scene, Timestep, Written,
};

/// The simulation of one row.
pub struct Stepper {
    model: Arc<Guarded>,
    physics: Physics,
    number: Number,
    frame_skip: FrameSkip,
    timestep: Timestep,
    pub(crate) init_qpos: Numbers,
    pub(crate) init_qvel: Numbers,
    state: Coordinates,
    pub(crate) ctrl: Field,
    pub(crate) xpos: Field,
    pub(crate) xipos: Field,
    pub(crate) cinert: Field,
    pub(crate) cvel: Field,
    pub(crate) cfrc_ext: Field,
    pub(crate) qfrc_actuator: Field,
    pub(crate) qfrc_constraint: Field,
    pub(crate) site_xpos: Field,
    pub(crate) ten_length: Field,
    pub(crate) ten_velocity: Field,
    pub(crate) body_mass: Field,
    scene: Scene,
    written: Written,
    /// The arrays that were asked for.
    observed: Vec<Field>,
    integers: Vec<Integers>,
    /// MuJoCo's warning of the last step or reset.
    warning: Option<String>,
    /// The reason why the simulation must be reset before it goes on.
    error: Option<String>,
    memory: Memory,
    /// The memory of the row that is stepped after this one.
    next: Memory,
    _keep_alive: Box<dyn Any + Send>,
}

/// The arrays that `mj_step` computes and observations, rewards and infos read: some of them belong to
/// the state before the last `mj_step`, so they cannot be computed again.
macro_rules! computed {
    ($stepper:ident $($mut:tt)?) => {
        [
            &$($mut)? $stepper.xpos,
            &$($mut)? $stepper.xipos,
            &$($mut)? $stepper.cinert,
            &$($mut)? $stepper.cvel,
            &$($mut)? $stepper.cfrc_ext,
            &$($mut)? $stepper.qfrc_actuator,
            &$($mut)? $stepper.qfrc_constraint,
            &$($mut)? $stepper.site_xpos,
            &$($mut)? $stepper.ten_length,
            &$($mut)? $stepper.ten_velocity,
        ]
    };
}

/// The distribution of the noise of velocities.
#[derive(Debug, Clone, Copy)]
pub enum VelocityNoise {
    /// As that of positions.
    Uniform,
    /// Normally, with the scale as deviation.
    Normal,
}

impl Stepper {
    /// The simulation of a new row.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] when there is none, or when its arrays do not fit the model's sizes.
    pub(crate) fn new(model: &Arc<Guarded>, observed: &[Observed]) -> Result<Self, Error> {
        let row = (model.make_row)()?;
        let RowParts { number, addresses, fields, integers, memory, keep_alive } = row;
        let Sizes { nq, nv, nu, nbody, nsite, ntendon } = model.sizes;
        // SAFETY: invariant 1.
        let field = |name: &str, len: usize| unsafe { Field::new(&fields, name, len) };
        Ok(Self {
            model: Arc::clone(model),
            // SAFETY: invariant 1.
            physics: unsafe { Physics::new(model.library, addresses.0, addresses.1)? },
            number: Number(number),
            frame_skip: FrameSkip(model.frame_skip),
            timestep: Timestep(model.timestep),
            init_qpos: Numbers(model.init_qpos.clone()),
            init_qvel: Numbers(model.init_qvel.clone()),
            state: Coordinates { qpos: field("qpos", nq)?, qvel: field("qvel", nv)? },
            ctrl: field("ctrl", nu)?,
            xpos: field("xpos", 3 * nbody)?,
            xipos: field("xipos", 3 * nbody)?,
            cinert: field("cinert", 10 * nbody)?,
            cvel: field("cvel", 6 * nbody)?,
            cfrc_ext: field("cfrc_ext", 6 * nbody)?,
            qfrc_actuator: field("qfrc_actuator", nv)?,
            qfrc_constraint: field("qfrc_constraint", nv)?,
            site_xpos: field("site_xpos", 3 * nsite)?,
            ten_length: field("ten_length", ntendon)?,
            ten_velocity: field("ten_velocity", ntendon)?,
            body_mass: field("body_mass", nbody)?,
            scene: Scene(
                model
                    .scene
                    .iter()
                    .map(|name| field(name, fields.get(name).map_or(0, |&(_, len)| len)))
                    .collect::<Result<_, _>>()?,
            ),
            written: Written::default(),
            observed: observed
                .iter()
                .map(|Observed(name, len)| field(name, *len))
                .collect::<Result<_, _>>()?,
            integers: integers
                .iter()
                .map(|(name, &address)| {
                    let copy = field(name, fields.get(name).map_or(0, |&(_, len)| len))?;
                    // SAFETY: invariant 1.
                    unsafe { Integers::new(address, copy) }
                })
                .collect::<Result<_, _>>()?,
            warning: None,
            error: None,
            memory,
            next: Memory::default(),
            _keep_alive: keep_alive,
        })
    }

    /// Calls MuJoCo. After an error the simulation does nothing until it is reset.
    fn call(&mut self, call: impl FnOnce(&mut Physics)) -> Result<(), Failure> {
        if let Some(error) = &self.error {
            return Err(Failure::new(error));
        }
        let (result, warning) = guarded(&self.model.library, || call(&mut self.physics));
        if warning.is_some() {
            self.warning = warning;
        }
        self.integers.iter_mut().for_each(Integers::copy);
        result.inspect_err(|error| self.error = Some(error.to_string()))
    }

    /// `MujocoEnv.do_simulation`: a step with these controls.
    #[inline]
    pub(crate) fn step(&mut self, action: FloatsRef<'_>) -> Result<(), Failure> {
        self.warning = None;
        for (ctrl, action) in self.ctrl.iter_mut().zip(action.iter()) {
            *ctrl = action;
        }
        let frame_skip = self.frame_skip.0;
        let next = std::mem::take(&mut self.next);
        self.call(|physics| physics.step(frame_skip, &next))
    }

    /// Tells which row is stepped after this one, before [`Stepper::step`].
    #[inline]
    pub(crate) fn step_follows(&mut self, next: Option<&Self>) {
        self.next = next.map_or_else(Memory::default, |next| next.memory);
    }

    /// `mj_resetData`, the first thing in every reset.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        (self.warning, self.error) = (None, None);
        self.call(Physics::reset)
    }

    /// `MujocoEnv.set_state`, of the positions and velocities that were written.
    pub(crate) fn forward(&mut self) -> Result<(), Failure> {
        self.call(Physics::forward)
    }

    /// A reset to the initial state with noise.
    pub(crate) fn reset(
        &mut self,
        scale: f64,
        velocities: VelocityNoise,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        self.place(scale, velocities, rng)?;
        self.forward()
    }

    /// The same to the initial state without noise, from which nothing is computed.
    pub(crate) fn place_exactly(&mut self) -> Result<(), Failure> {
        self.clear()?;
        self.set_initial_positions();
        self.state.qvel.copy_from_slice(&self.init_qvel);
        Ok(())
    }

    /// The same with noise. All positions are drawn before all velocities.
    pub(crate) fn place(
        &mut self,
        scale: f64,
        velocities: VelocityNoise,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        self.clear()?;
        for (position, initial) in self.state.qpos.iter_mut().zip(&*self.init_qpos) {
            *position = initial + rng.uniform(-scale, scale);
        }
        for (velocity, initial) in self.state.qvel.iter_mut().zip(&*self.init_qvel) {
            *velocity = initial
                + match velocities {
                    VelocityNoise::Uniform => rng.uniform(-scale, scale),
                    VelocityNoise::Normal => scale * rng.standard_normal(),
                };
        }
        Ok(())
    }

    /// Draws the velocities of an arm: the initial ones with noise, and zero for the last `still`.
    pub(crate) fn reset_arm_velocities(&mut self, still: usize, rng: &mut Rng) {
        for (velocity, initial) in self.state.qvel.iter_mut().zip(&*self.init_qvel) {
            *velocity = initial + rng.uniform(-0.005, 0.005);
        }
        let arm = self.state.qvel.len() - still;
        self.state.qvel[arm..].fill(0.0);
    }

    /// Writes the initial positions, without noise.
    pub(crate) fn set_initial_positions(&mut self) {
        self.state.qpos.copy_from_slice(&self.init_qpos);
    }

    /// The velocity of something that was and is at these places, in a step.
    #[inline]
    pub(crate) fn velocity<const N: usize>(&self, before: [f64; N], after: [f64; N]) -> [f64; N] {
        let dt = self.dt();
        difference(after, before).map(|way| way / dt)
    }

    /// `np.linalg.norm(vector)`.
    #[inline]
    pub(crate) fn norm<const N: usize>(&self, vector: [f64; N]) -> f64 {
        norm(vector, self.model.fused_norms)
    }

    /// The first two positions: where a free body is in the plane.
    #[inline]
    pub(crate) fn xy(&self) -> [f64; 2] {
        [self.qpos()[0], self.qpos()[1]]
    }

    /// Seconds of a step: `MujocoEnv.dt`.
    #[inline]
    pub(crate) fn dt(&self) -> f64 {
        self.timestep.0 * f64::from(self.frame_skip.0)
    }

    /// Seconds of one `mj_step`: `model.opt.timestep`.
    #[inline]
    pub(crate) fn timestep(&self) -> f64 {
        self.timestep.0
    }

    /// Positions.
    #[inline]
    pub(crate) fn qpos(&self) -> &[f64] {
        &self.state.qpos
    }

    /// Positions, to be set before [`Stepper::forward`].
    pub(crate) fn qpos_mut(&mut self) -> &mut [f64] {
        &mut self.state.qpos
    }

    /// Velocities.
    #[inline]
    pub(crate) fn qvel(&self) -> &[f64] {
        &self.state.qvel
    }

    /// The position of a body: `data.body(body).xpos`.
    #[inline]
    pub(crate) fn body_position(&self, body: usize) -> [f64; 3] {
        std::array::from_fn(|axis| self.xpos[3 * body + axis])
    }

    /// The arrays that were asked for, in that order.
    #[inline]
    pub(crate) fn observed(&self) -> impl Iterator<Item = &[f64]> {
        self.observed.iter().map(|field| &**field)
    }

    /// Takes MuJoCo's warning of the last step or reset.
    pub(crate) fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// The parameter of this name that every row has; `options!` names them.
    pub(crate) fn parameter(&self, name: &str) -> Option<&dyn Parameter> {
        Some(match name {
            "simulation" => &self.number,
            "frame_skip" => &self.frame_skip,
            "timestep" => &self.timestep,
            "init_qpos" => &self.init_qpos,
            "init_qvel" => &self.init_qvel,
            "qpos" => &self.state.qpos,
            "qvel" => &self.state.qvel,
            "state_vector" => &self.state,
            "ctrl" => &self.ctrl,
            "scene" => &self.scene,
            "written" => &self.written,
            _ => return None,
        })
    }

    /// The parameter of this name that every row has, for setting it.
    pub(crate) fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter> {
        Some(match name {
            "simulation" => &mut self.number,
            "frame_skip" => &mut self.frame_skip,
            "timestep" => &mut self.timestep,
            "init_qpos" => &mut self.init_qpos,
            "init_qvel" => &mut self.init_qvel,
            "qpos" => &mut self.state.qpos,
            "qvel" => &mut self.state.qvel,
            "state_vector" => &mut self.state,
            "ctrl" => &mut self.ctrl,
            "scene" => &mut self.scene,
            "written" => &mut self.written,
            _ => return None,
        })
    }

    /// Positions or velocities that were set take effect, as in `MujocoEnv.set_state`. An error of
    /// MuJoCo fails the next step.
    pub(crate) fn parameters_changed(&mut self) {
        if let Some(fields) = self.written.fields.take() {
            self.written.refused = self.use_written(fields).err().map(|error| error.to_string());
        } else if self.state.qpos.take_set() | self.state.qvel.take_set() {
            let _kept = self.forward();
        }
    }

    /// Lets the fields that the row's owner has written take effect.
    fn use_written(&mut self, fields: Fields) -> Result<(), Failure> {
        if fields == Fields::Constants {
            let spec = self.model.state_spec;
            // SAFETY: only rows with a model of their own are told so (invariant 2).
            self.call(|physics| unsafe { physics.set_constants(spec) })?;
        }
        self.forward()
    }

    /// Appends the state: all that steps, observations, infos and frames depend on, except the model.
    pub(crate) fn save(&self, state: &mut Vec<u8>) {
        (self.frame_skip.0, self.timestep.0).save(state);
        (self.init_qpos.0.clone(), self.init_qvel.0.clone()).save(state);
        self.physics.state(self.model.state_spec).save(state);
        for field in computed!(self) {
            field.to_vec().save(state);
        }
        for field in self.observed.iter().chain(&self.scene.0) {
            field.to_vec().save(state);
        }
    }

    /// Continues from a saved state.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for a state of another model.
    pub(crate) fn load(&mut self, state: &mut &[u8]) -> Result<(), Failure> {
        let (frame_skip, timestep) = State::load(state)?;
        check_frame_skip(frame_skip)?;
        check_timestep(timestep)?;
        let (init_qpos, init_qvel): (Vec<f64>, Vec<f64>) = State::load(state)?;
        let physics: Vec<f64> = State::load(state)?;
        self.clear()?; // what is not part of a state, such as a stack that an error left
        if !self.physics.set_state(self.model.state_spec, &physics) {
            return Err(another_model());
        }
        for field in computed!(self mut) {
            load_numbers(field, State::load(state)?)?;
        }
        for field in self.observed.iter_mut().chain(&mut self.scene.0) {
            load_numbers(field, State::load(state)?)?;
        }
        load_numbers(&mut self.init_qpos.0, init_qpos)?;
        load_numbers(&mut self.init_qvel.0, init_qvel)?;
        (self.frame_skip, self.timestep) = (FrameSkip(frame_skip), Timestep(timestep));
        Ok(())
    }
}

fn another_model() -> Failure {
    Failure::new("the state is of another model: its sizes differ")
}

fn load_numbers(numbers: &mut [f64], saved: Vec<f64>) -> Result<(), Failure> {
    if numbers.len() != saved.len() {
        return Err(another_model());
    }
    numbers.copy_from_slice(&saved);
    Ok(())
}

impl fmt::Debug for Stepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper").field("number", &self.number).finish_non_exhaustive()
    }
}
