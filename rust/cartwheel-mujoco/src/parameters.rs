//! The parameters of a simulation, besides its arrays.

use std::ops::{Deref, DerefMut};

use cartwheel::{Error, Parameter, ParameterValue};

use crate::field::{Field, set_numbers};
use crate::model::{check_frame_skip, check_timestep};

/// Positions and velocities: as a parameter one array, `MujocoEnv.state_vector()`.
#[derive(Debug)]
pub(crate) struct Coordinates {
    pub(crate) qpos: Field,
    pub(crate) qvel: Field,
}

impl Parameter for Coordinates {
    fn get(&self) -> ParameterValue {
        [&*self.qpos, &*self.qvel].concat().get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut all = [&*self.qpos, &*self.qvel].concat();
        set_numbers(&mut all, value)?;
        let (qpos, qvel) = all.split_at(self.qpos.len());
        self.qpos.assign(qpos);
        self.qvel.assign(qvel);
        Ok(())
    }
}

/// The drawn arrays: as a parameter one array, those of [`Model::scene`](crate::Model::scene) one
/// after the other.
#[derive(Debug)]
pub(crate) struct Scene(pub(crate) Vec<Field>);

impl Parameter for Scene {
    fn get(&self) -> ParameterValue {
        let parts: Vec<&[f64]> = self.0.iter().map(|field| &**field).collect();
        parts.concat().get()
    }

    fn set(&mut self, _: ParameterValue) -> Result<(), Error> {
        Err(Error::BadParameter("cannot be set: MuJoCo computes it".to_owned()))
    }
}

/// The number by which Python knows the row.
#[derive(Debug)]
pub(crate) struct Number(pub(crate) u64);

impl Parameter for Number {
    fn get(&self) -> ParameterValue {
        self.0.into()
    }

    fn set(&mut self, _: ParameterValue) -> Result<(), Error> {
        Err(Error::BadParameter("cannot be set: it numbers the row's simulation".to_owned()))
    }
}

/// Fields that the row's owner has written since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Arrays of the data, or of the model where its constants do not depend on them.
    Plain,
    /// Fields of the row's own model on which its constants depend.
    Constants,
}

/// The parameter by which the owner says so, with the number of a variant. It reads as `None`, or as the
/// reason why MuJoCo refuses what was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) fields: Option<Fields>,
    pub(crate) refused: Option<String>,
}

impl Parameter for Written {
    fn get(&self) -> ParameterValue {
        self.refused.clone().map_or(ParameterValue::None, ParameterValue::Text)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut number = 0_u32;
        number.set(value)?;
        let fields = match number {
            1 => Fields::Plain,
            2 => Fields::Constants,
            _ => return Err(Error::BadParameter(format!("must be 1 or 2, got {number}"))),
        };
        *self = Self { fields: Some(fields), refused: None };
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct FrameSkip(pub(crate) u32);

impl Parameter for FrameSkip {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut new = self.0;
        new.set(value)?;
        check_frame_skip(new)
            .map_err(|_| Error::BadParameter("must be at least 1, got 0".into()))?;
        self.0 = new;
        Ok(())
    }
}

/// Seconds of one `mj_step`, as rewards see it. MuJoCo itself reads its model.
#[derive(Debug)]
pub(crate) struct Timestep(pub(crate) f64);

impl Parameter for Timestep {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut new = self.0;
        new.set(value)?;
        check_timestep(new).map_err(|_| {
            Error::BadParameter(format!("must be a positive number of seconds, got {new:?}"))
        })?;
        self.0 = new;
        Ok(())
    }
}

/// As many numbers as there were at first.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) Vec<f64>);

impl Deref for Numbers {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

impl Parameter for Numbers {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        set_numbers(&mut self.0, value)
    }
}
