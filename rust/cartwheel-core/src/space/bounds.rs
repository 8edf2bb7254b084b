//! Bounds of boxes: exact for every element type.

use crate::DType;
use crate::error::Error;

/// Bounds of a [`Space::Box`](super::Space::Box), for all elements or for each, row-major.
///
/// In a box of integers, an infinite bound is the smallest or largest number of the type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Bounds {
    /// The same for every element.
    All(f64),
    /// One for each element.
    Each(Vec<f64>),
    /// The same integer for every element; exact where `f64` is not, beyond 2⁵³.
    Integer(i128),
    /// One integer for each element.
    Integers(Vec<i128>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    Float(f64),
    Integer(i128),
}

/// Calls `$call` with the Rust type of an element type that environments use.
macro_rules! typed {
    ($dtype:expr, $call:ident($($argument:expr),*), $other:expr) => {
        match $dtype {
            DType::I8 => $call!(i8, $($argument),*),
            DType::I16 => $call!(i16, $($argument),*),
            DType::I32 => $call!(i32, $($argument),*),
            DType::I64 => $call!(i64, $($argument),*),
            DType::U8 => $call!(u8, $($argument),*),
            DType::U16 => $call!(u16, $($argument),*),
            DType::U32 => $call!(u32, $($argument),*),
            DType::U64 => $call!(u64, $($argument),*),
            _ => $other,
        }
    };
}

impl Bounds {
    /// Number of bounds.
    pub fn len(&self) -> usize {
        match self {
            Self::All(_) | Self::Integer(_) => 1,
            Self::Each(bounds) => bounds.len(),
            Self::Integers(bounds) => bounds.len(),
        }
    }

    /// Whether there is no bound, because there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is one bound for all elements together.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::All(_) | Self::Integer(_))
    }

    pub(super) fn of(&self, element: usize) -> Bound {
        match self {
            Self::All(bound) => Bound::Float(*bound),
            Self::Each(bounds) => Bound::Float(bounds[element]),
            Self::Integer(bound) => Bound::Integer(*bound),
            Self::Integers(bounds) => Bound::Integer(bounds[element]),
        }
    }

    /// The bounds as elements of `dtype`, in the machine's byte order: one if they are shared, else
    /// one for each element.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] when `dtype` cannot hold a bound, or is not a type of environments.
    pub fn elements(&self, dtype: DType) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(self.len() * dtype.size());
        for at in 0..self.len() {
            let bound = self.of(at);
            bound.push(dtype, &mut bytes).ok_or_else(|| {
                Error::bad_options(format!("{} has no bound {}", dtype.name(), bound.text()))
            })?;
        }
        Ok(bytes)
    }

    /// The bounds that [`Bounds::elements`] wrote; `shared` if there is one for all elements.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] when `dtype` is not a type of environments.
    pub fn from_elements(dtype: DType, elements: &[u8], shared: bool) -> Result<Self, Error> {
        macro_rules! integers {
            ($type:ident, $elements:expr) => {{
                let (chunks, _) = $elements.as_chunks::<{ size_of::<$type>() }>();
                Some(chunks.iter().map(|bytes| $type::from_ne_bytes(*bytes).into()).collect())
            }};
        }
        let floats: Vec<f64> = match dtype {
            DType::F32 => {
                let (chunks, _) = elements.as_chunks::<4>();
                chunks.iter().map(|bytes| f32::from_ne_bytes(*bytes).into()).collect()
            }
            DType::F64 => {
                let (chunks, _) = elements.as_chunks::<8>();
                chunks.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
            }
            _ => {
                let bools = || elements.iter().map(|&byte| byte.into()).collect();
                let other = (dtype == DType::Bool).then(bools);
                let integers: Option<Vec<i128>> = typed!(dtype, integers(elements), other);
                let integers = integers.ok_or_else(|| unusable(dtype))?;
                return Ok(match (shared, integers.first()) {
                    (true, Some(first)) => Self::Integer(*first),
                    _ => Self::Integers(integers),
                });
            }
        };
        Ok(match (shared, floats.first()) {
            (true, Some(first)) => Self::All(*first),
            _ => Self::Each(floats),
        })
    }
}

/// The error of an element type that environments do not use.
pub(super) fn unusable(dtype: DType) -> Error {
    Error::bad_options(format!("no space of an environment has elements of {}", dtype.name()))
}

impl Bound {
    /// The bound as a float, rounded.
    #[expect(clippy::cast_precision_loss, reason = "rounding is wanted")]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Float(float) => float,
            Self::Integer(integer) => integer as f64,
        }
    }

    /// The bound as an integer of `dtype`; `None` for a fraction, or when it is too large.
    #[expect(clippy::cast_possible_truncation, reason = "the number is a whole one")]
    pub(super) fn integer(self, dtype: DType) -> Option<i128> {
        let (min, max) = dtype.integer_range()?;
        let integer = match self {
            Self::Integer(integer) => integer,
            Self::Float(f64::INFINITY) => max,
            Self::Float(f64::NEG_INFINITY) => min,
            Self::Float(float) if float.fract() == 0.0 => float as i128,
            Self::Float(_) => return None,
        };
        (min..=max).contains(&integer).then_some(integer)
    }

    /// Appends the bound as an element of `dtype`, in the machine's byte order. `None`, and perhaps some
    /// bytes, if `dtype` cannot hold it.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float32 space rounds, as Gymnasium does"
    )]
    pub(super) fn push(self, dtype: DType, bytes: &mut Vec<u8>) -> Option<()> {
        macro_rules! integer {
            ($type:ident, $integer:expr) => {
                bytes.extend($type::try_from($integer).ok()?.to_ne_bytes())
            };
        }
        match dtype {
            DType::F32 => bytes.extend((self.float() as f32).to_ne_bytes()),
            DType::F64 => bytes.extend(self.float().to_ne_bytes()),
            DType::Bool => bytes.push(u8::try_from(self.integer(dtype)?).ok()?),
            _ => {
                let whole = self.integer(dtype)?;
                typed!(dtype, integer(whole), return None);
            }
        }
        (!self.float().is_nan()).then_some(())
    }

    fn text(self) -> String {
        match self {
            Self::Float(float) => float.to_string(),
            Self::Integer(integer) => integer.to_string(),
        }
    }
}
