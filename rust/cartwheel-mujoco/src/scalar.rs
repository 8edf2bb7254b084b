//! Numbers of rewards and infos, in the types that Gymnasium's expressions have.

use std::ops::Neg;

use cartwheel::{Buffer, DType, Failure, FloatsRef, InfoValue, InfoWriter, State};

use crate::numeric::sum_of_squares;
use crate::python_number::PythonNumber;

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `np.float32`.
    F32(f32),
    /// `np.float64`.
    F64(f64),
    /// `np.int64`.
    I64(i64),
    /// Python's own float.
    Float(f64),
    /// Python's own integer.
    Int(i64),
}

impl Scalar {
    /// `np.sum(np.square(action))`, in the type of the action.
    #[inline]
    pub(crate) fn sum_of_squares(action: FloatsRef<'_>) -> Self {
        match action {
            FloatsRef::F32(action) => Self::F32(sum_of_squares(action)),
            FloatsRef::F64(action) => Self::F64(sum_of_squares(action)),
        }
    }

    /// The product with one of Python's own numbers, which takes NumPy's type.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "NumPy rounds the factor to `float32`")]
    pub(crate) fn times(self, factor: PythonNumber) -> Self {
        match self {
            Self::F32(value) => Self::F32(value * *factor as f32),
            other => Self::F64(other.wide() * *factor),
        }
    }

    /// As a `float64`.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "as in Python's own arithmetic")]
    pub(crate) fn wide(self) -> f64 {
        match self {
            Self::F32(value) => value.into(),
            Self::F64(value) | Self::Float(value) => value,
            Self::I64(value) | Self::Int(value) => value as f64,
        }
    }
}

impl PythonNumber {
    /// The product with one of NumPy's truth values.
    #[inline]
    pub(crate) fn if_numpy(self, flag: bool) -> Scalar {
        match self.integer() {
            Some(integer) => Scalar::I64(i64::from(flag) * integer),
            None => Scalar::F64(f64::from(flag) * *self),
        }
    }

    /// The product with one of Python's own truth values.
    #[inline]
    pub(crate) fn if_python(self, flag: bool) -> Scalar {
        match self.integer() {
            Some(integer) => Scalar::Int(i64::from(flag) * integer),
            None => Scalar::Float(f64::from(flag) * *self),
        }
    }
}

/// A `np.float64` of an info.
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "infos may lack numbers, and this is one of theirs")]
pub(crate) fn float64(value: f64) -> Option<Scalar> {
    Some(Scalar::F64(value))
}

impl Neg for Scalar {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        match self {
            Self::F32(value) => Self::F32(-value),
            Self::F64(value) => Self::F64(-value),
            Self::I64(value) => Self::I64(-value),
            Self::Float(value) => Self::Float(-value),
            Self::Int(value) => Self::Int(-value),
        }
    }
}

impl InfoValue for Scalar {
    #[inline]
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self {
            Self::F32(value) => writer.scalar(DType::F32, &value.to_ne_bytes()),
            Self::F64(value) => writer.scalar(DType::F64, &value.to_ne_bytes()),
            Self::I64(value) => writer.scalar(DType::I64, &value.to_ne_bytes()),
            Self::Float(value) => writer.float(*value),
            Self::Int(value) => writer.int(*value),
        }
    }
}

impl State for Scalar {
    fn save(&self, state: &mut Vec<u8>) {
        match self {
            Self::F32(value) => (0_u8, value.to_bits()).save(state),
            Self::F64(value) => (1_u8, value.to_bits()).save(state),
            Self::I64(value) => (2_u8, *value).save(state),
            Self::Float(value) => (3_u8, value.to_bits()).save(state),
            Self::Int(value) => (4_u8, *value).save(state),
        }
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        Ok(match u8::load(state)? {
            0 => Self::F32(State::load(state)?),
            1 => Self::F64(State::load(state)?),
            2 => Self::I64(State::load(state)?),
            3 => Self::Float(State::load(state)?),
            4 => Self::Int(State::load(state)?),
            kind => return Err(Failure::new(format!("there is no number of kind {kind}"))),
        })
    }
}
