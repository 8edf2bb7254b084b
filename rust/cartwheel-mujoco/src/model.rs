//! The model of MuJoCo that the rows of one vector environment share, described by numbers.
//!
//! # Invariants
//!
//! 1. **Rows** are as [`RowParts::new`] requires.
#![expect(unsafe_code, reason = "a constructor whose caller promises the invariant")]

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use cartwheel::Error;
use serde::Deserialize;

use crate::guard::Handlers;
use crate::library::Library;
use crate::memory::Memory;

/// Sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "MuJoCo's names of its sizes")]
pub struct Sizes {
    pub nq: usize,
    pub nv: usize,
    pub nu: usize,
    pub nbody: usize,
    pub nsite: usize,
    pub ntendon: usize,
}

impl Sizes {
    /// The sizes by MuJoCo's names.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] that names one that is missing.
    pub fn new(sizes: &BTreeMap<String, usize>) -> Result<Self, Error> {
        let of = |name: &str| {
            let size = sizes.get(name).copied();
            size.ok_or_else(|| Error::bad_options(format!("the size `{name}` is missing")))
        };
        Ok(Self {
            nq: of("nq")?,
            nv: of("nv")?,
            nu: of("nu")?,
            nbody: of("nbody")?,
            nsite: of("nsite")?,
            ntendon: of("ntendon")?,
        })
    }
}

/// A simulation of one row, by addresses.
pub struct RowParts {
    pub(crate) number: u64,
    pub(crate) addresses: (usize, usize),
    pub(crate) fields: BTreeMap<String, (usize, usize)>,
    pub(crate) integers: BTreeMap<String, usize>,
    pub(crate) memory: Memory,
    pub(crate) keep_alive: Box<dyn Any + Send>,
}

impl RowParts {
    /// The simulation of the row that the caller knows by `number`: the addresses of its `mjModel`
    /// and its `mjData`, and of arrays of `f64` in both, by MuJoCo's names and with their numbers of
    /// elements. `integers` are the addresses of as many `c_int`, by names of fields: these fields are copies
    /// of them. `memory` are the ranges that steps use most, as addresses and numbers of bytes, for speed
    /// alone. `keep_alive` is dropped with the row, on any thread.
    ///
    /// # Safety
    ///
    /// The addresses are those of a model and of a data that was made from it by the library of the
    /// [`Model`], and of their arrays. They stay valid until the row has dropped `keep_alive`.
    /// Nothing else uses the data, or changes the model, during a call to the row (invariant 1 of
    /// the file).
    pub unsafe fn new(
        number: u64,
        addresses: (usize, usize),
        fields: BTreeMap<String, (usize, usize)>,
        integers: BTreeMap<String, usize>,
        memory: &[(usize, usize)],
        keep_alive: Box<dyn Any + Send>,
    ) -> Self {
        Self { number, addresses, fields, integers, memory: Memory::new(memory), keep_alive }
    }
}

impl fmt::Debug for RowParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowParts").field("number", &self.number).finish_non_exhaustive()
    }
}

/// An array of a simulation that is observed, and its number of elements.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Observed(pub(crate) String, pub(crate) usize);

/// A model of MuJoCo, and how its rows are made.
pub struct Model {
    /// MuJoCo.
    pub library: Library,
    /// Its sizes.
    pub sizes: Sizes,
    /// Calls of `mj_step` in a step of the environment.
    pub frame_skip: u32,
    /// `model.opt.timestep`, in seconds.
    pub timestep: f64,
    /// Positions after a reset, without noise.
    pub init_qpos: Vec<f64>,
    /// Velocities after a reset, without noise.
    pub init_qvel: Vec<f64>,
    /// The smallest and largest value of each element of an action.
    pub action_bounds: (Vec<f64>, Vec<f64>),
    /// Numbers of the bodies, by name.
    pub bodies: BTreeMap<String, usize>,
    /// `mjSTATE_INTEGRATION`: what of a data decides how it goes on.
    pub state_spec: i32,
    /// Whether NumPy's norm of a short vector uses fused multiply-add instructions.
    pub fused_norms: bool,
    /// The arrays of a row that frames are drawn from.
    pub scene: Vec<String>,
    /// Makes the simulation of a row, on any thread.
    pub make_row: Box<dyn Fn() -> Result<RowParts, Error> + Send + Sync>,
}

impl Model {
    /// Checks that the numbers fit each other.
    fn check(&self) -> Result<(), Error> {
        let Sizes { nq, nv, nu, .. } = self.sizes;
        let lengths = [
            ("init_qpos", self.init_qpos.len(), nq),
            ("init_qvel", self.init_qvel.len(), nv),
            ("action_low", self.action_bounds.0.len(), nu),
            ("action_high", self.action_bounds.1.len(), nu),
        ];
        for (name, length, wanted) in lengths {
            if length != wanted {
                return Err(Error::bad_options(format!(
                    "`{name}` must have {wanted} numbers, got {length}"
                )));
            }
        }
        check_frame_skip(self.frame_skip)?;
        check_timestep(self.timestep)
    }

    /// The number of a body.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] when the model has no body of this name.
    pub fn body(&self, name: &str) -> Result<usize, Error> {
        match self.bodies.get(name) {
            Some(&body) if body < self.sizes.nbody => Ok(body),
            _ => {
                let names: Vec<&String> = self.bodies.keys().collect();
                Err(Error::bad_options(format!("the model has no body {name:?}, only {names:?}")))
            }
        }
    }

    /// Refuses models for which observations would have another shape than Gymnasium declares, or
    /// which lack what the equations use; `fits` says whether this is none.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] that says what is `wanted`.
    pub(crate) fn check_sizes(&self, fits: bool, wanted: &str) -> Result<(), Error> {
        if fits {
            return Ok(());
        }
        let Sizes { nq, nv, nbody, nsite, .. } = self.sizes;
        Err(Error::bad_options(format!(
            "the model must have {wanted}, got {nq} positions, {nv} velocities, {nbody} bodies and \
             {nsite} sites"
        )))
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

pub(crate) fn check_frame_skip(frame_skip: u32) -> Result<(), Error> {
    if frame_skip == 0 {
        return Err(Error::bad_options("`frame_skip` must be at least 1, got 0"));
    }
    Ok(())
}

pub(crate) fn check_timestep(timestep: f64) -> Result<(), Error> {
    if !(timestep.is_finite() && timestep > 0.0) {
        return Err(Error::bad_options(format!(
            "`timestep` must be a positive number of seconds, got {timestep:?}"
        )));
    }
    Ok(())
}

/// A model that was checked, with MuJoCo's errors caught as long as it lives.
#[derive(Debug)]
pub(crate) struct Guarded {
    model: Model,
    _handlers: Handlers,
}

impl Guarded {
    /// Checks a model, and installs the handlers.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] for numbers that do not fit each other, and while environments of
    /// another copy of MuJoCo live.
    pub(crate) fn new(model: Model) -> Result<Self, Error> {
        model.check()?;
        let handlers = Handlers::install(&model.library)?;
        Ok(Self { model, _handlers: handlers })
    }
}

impl std::ops::Deref for Guarded {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}
