//! The spaces of actions and observations of a native environment: Gymnasium's spaces, with bounds.

mod bounds;
mod sample;
mod text;

use std::collections::BTreeSet;
use std::fmt;

use crate::error::Error;
use crate::info::{Buffer, InfoWriter};
use crate::simd::{self, Loops};
use crate::{DType, Leaf};

pub use bounds::Bounds;
pub use text::TextSpace;

/// One of Gymnasium's spaces.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Space {
    /// `Box(low, high, shape, dtype)`.
    Box {
        /// Element type.
        dtype: DType,
        /// Shape of one row.
        shape: Vec<usize>,
        /// Smallest values.
        low: Bounds,
        /// Largest values.
        high: Bounds,
    },
    /// `Discrete(n, start=start)`: one of `start..start + n`, an `int64`.
    Discrete {
        /// Number of values.
        n: i64,
        /// The smallest value.
        start: i64,
    },
    /// `MultiDiscrete(nvec, start=start)`: an array of `int64`, each one of `start..start + n`.
    MultiDiscrete {
        /// Shape of one row.
        shape: Vec<usize>,
        /// Number of values of each element, row-major.
        counts: Vec<i64>,
        /// The smallest value of each element, row-major.
        starts: Vec<i64>,
    },
    /// `MultiBinary(shape)`: zeros and ones, `int8`.
    MultiBinary(Vec<usize>),
    /// `Text(max_length, min_length=min_length, charset=charset)`: only of observations.
    Text(TextSpace),
    /// `Tuple(spaces)`.
    Tuple(Vec<Space>),
    /// `Dict(spaces)`, with sorted keys: Gymnasium sorts them, and the leaves follow its order.
    /// [`Space::check`] refuses unsorted keys.
    Dict(Vec<(String, Space)>),
}

impl Space {
    /// `Discrete(n)`.
    pub fn discrete(n: i64) -> Self {
        Self::Discrete { n, start: 0 }
    }

    /// `Box(low, high, dtype=np.float32)` with bounds for each element of a vector. The bounds are
    /// rounded to `f32`, as Gymnasium does.
    pub fn float_box(low: &[f64], high: &[f64]) -> Self {
        let bounds = |values: &[f64]| Bounds::Each(values.iter().copied().map(rounded).collect());
        let (dtype, shape) = (DType::F32, vec![low.len()]);
        Self::Box { dtype, shape, low: bounds(low), high: bounds(high) }
    }

    /// `Box(-high, high, dtype=np.float32)`.
    pub fn symmetric_box(high: &[f64]) -> Self {
        let low: Vec<f64> = high.iter().map(|bound| -bound).collect();
        Self::float_box(&low, high)
    }

    /// `Box(low, high, shape, dtype)`, with the same bounds for every element; infinite ones bound
    /// nothing.
    pub fn shaped_box(dtype: DType, shape: &[usize], low: f64, high: f64) -> Self {
        let all = |bound| Bounds::All(if dtype == DType::F32 { rounded(bound) } else { bound });
        Self::Box { dtype, shape: shape.to_vec(), low: all(low), high: all(high) }
    }

    /// `Box(low, high, shape, dtype)` of integers, exact beyond 2⁵³ too, or of `bool` with bounds 0 and 1, with the same
    /// bounds for every element.
    pub fn integer_box(dtype: DType, shape: &[usize], low: i128, high: i128) -> Self {
        let (low, high) = (Bounds::Integer(low), Bounds::Integer(high));
        Self::Box { dtype, shape: shape.to_vec(), low, high }
    }

    /// `MultiDiscrete(counts)`: a vector, each element in `0..count`.
    pub fn multi_discrete(counts: &[i64]) -> Self {
        let (shape, starts) = (vec![counts.len()], vec![0; counts.len()]);
        Self::MultiDiscrete { shape, counts: counts.to_vec(), starts }
    }

    /// `Dict(spaces)`, sorted by key.
    pub fn dict<const N: usize>(spaces: [(&str, Self); N]) -> Self {
        let mut spaces = spaces.map(|(key, space)| (key.to_owned(), space)).to_vec();
        spaces.sort_by(|(key, _), (other, _)| key.cmp(other));
        Self::Dict(spaces)
    }

    /// `Text(max_length, min_length=0, charset=charset)`.
    pub fn text(max_length: usize, charset: &str) -> Self {
        Self::Text(TextSpace { min_length: 0, max_length, charset: charset.to_owned() })
    }

    /// The arrays into which it flattens, in order.
    pub fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.visit(&mut |space| leaves.extend(space.leaf()));
        leaves
    }

    /// Checks the space: every `Dict` has its keys in Gymnasium's order (in another order its leaves
    /// would change places), counts are positive, and bounds are as many as the elements and fit
    /// them. `what` names the space in the message, and a part's with its key or number: `observation.camera`.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`]: the environment declares a space that Gymnasium would refuse or build
    /// differently.
    pub fn check(&self, what: &str) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::bad_options(format!("the {what} space {text}")));
        match self {
            Self::Tuple(parts) => {
                let mut parts = parts.iter().enumerate();
                return parts.try_for_each(|(at, part)| part.check(&format!("{what}.{at}")));
            }
            Self::Dict(parts) => {
                let keys: Vec<&str> = parts.iter().map(|(key, _)| key.as_str()).collect();
                if !keys.is_sorted_by(|key, next| key < next) {
                    let sorted: BTreeSet<&str> = keys.iter().copied().collect();
                    let sorted = Vec::from_iter(sorted);
                    return wrong(format!(
                        "has the keys {keys:?}: order them alphabetically, each once: {sorted:?}"
                    ));
                }
                let mut parts = parts.iter();
                return parts.try_for_each(|(key, part)| part.check(&format!("{what}.{key}")));
            }
            Self::Discrete { n, start } if *n < 1 || start.checked_add(n - 1).is_none() => {
                return wrong(format!("has {n} values from {start} on"));
            }
            Self::MultiDiscrete { shape, counts, starts } => {
                let lengths = [counts.len(), starts.len()];
                if lengths != [self.row_len(); 2] {
                    return wrong(format!("of shape {shape:?} has {lengths:?} counts and starts"));
                }
                let ends = |(n, start): (&i64, &i64)| *n > 0 && start.checked_add(n - 1).is_some();
                if !counts.iter().zip(starts).all(ends) {
                    return wrong(format!("has {counts:?} values from {starts:?} on"));
                }
            }
            Self::Box { dtype, shape, low, high } => {
                for bounds in [low, high] {
                    if !bounds.is_shared() && bounds.len() != self.row_len() {
                        return wrong(format!("of shape {shape:?} has {} bounds", bounds.len()));
                    }
                    if let Err(error) = bounds.elements(*dtype) {
                        return wrong(format!("has a wrong bound: {error}"));
                    }
                }
                let above = |at| match (low.of(at).integer(*dtype), high.of(at).integer(*dtype)) {
                    (Some(low), Some(high)) => low > high,
                    _ => low.of(at).float() > high.of(at).float(),
                };
                if let Some(at) = (0..low.len().max(high.len())).find(|&at| above(at)) {
                    return wrong(format!("has a low bound above the high one, in element {at}"));
                }
            }
            Self::Text(text) => return text.check().or_else(wrong),
            Self::Discrete { .. } | Self::MultiBinary(_) => {}
        }
        Ok(())
    }

    /// Elements of one row of a space that is an array, else 0.
    fn row_len(&self) -> usize {
        self.leaf().and_then(|leaf| leaf.checked_row_len()).unwrap_or(0)
    }

    /// The leaf of a space that is an array.
    fn leaf(&self) -> Option<Leaf> {
        let (dtype, shape) = match self {
            Self::Box { dtype, shape, .. } => (*dtype, shape.clone()),
            Self::Discrete { .. } => (DType::I64, Vec::new()),
            Self::MultiDiscrete { shape, .. } => (DType::I64, shape.clone()),
            Self::MultiBinary(shape) => (DType::I8, shape.clone()),
            Self::Text(text) => (DType::U8, vec![text.row_bytes()]),
            Self::Tuple(_) | Self::Dict(_) => return None,
        };
        Some(Leaf { dtype, shape })
    }

    /// Calls `visitor` with every space that is an array, in the order of the leaves.
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Self)) {
        match self {
            Self::Tuple(parts) => parts.iter().for_each(|part| part.visit(visitor)),
            Self::Dict(parts) => parts.iter().for_each(|(_, part)| part.visit(visitor)),
            _ => visitor(self),
        }
    }

    /// The space of leaf `leaf`; the space is an array.
    ///
    /// # Panics
    ///
    /// When the leaf does not exist.
    pub fn array(&self, leaf: usize) -> &Self {
        let (mut found, mut number) = (None, 0);
        self.visit(&mut |space| {
            if number == leaf {
                found = Some(space);
            }
            number += 1;
        });
        found.unwrap_or_else(|| panic!("there is no leaf {leaf} of {number}"))
    }

    /// Writes one observation as a value of an info, as a Python environment returns it: integers
    /// for `Discrete`, arrays, texts, tuples, dictionaries. `bytes` returns the bytes of a leaf, given its
    /// number.
    pub fn write_value<'a>(
        &self,
        bytes: &dyn Fn(usize) -> &'a [u8],
        next: &mut usize,
        writer: &mut InfoWriter<impl Buffer>,
    ) {
        let mut leaf = || {
            *next += 1;
            bytes(*next - 1)
        };
        match self {
            Self::Discrete { .. } => writer.int(integer(leaf())),
            Self::Box { dtype, shape, .. } => writer.array(*dtype, shape, leaf()),
            Self::MultiDiscrete { shape, .. } => writer.array(DType::I64, shape, leaf()),
            Self::MultiBinary(shape) => writer.array(DType::I8, shape, leaf()),
            Self::Text(_) => writer.text(TextSpace::read(leaf()).unwrap_or_default()),
            Self::Tuple(parts) => {
                writer.tuple(parts.len());
                for part in parts {
                    part.write_value(bytes, next, writer);
                }
            }
            Self::Dict(parts) => {
                writer.dict(parts.len());
                for (key, part) in parts {
                    writer.key(key);
                    part.write_value(bytes, next, writer);
                }
            }
        }
    }

    /// Checks actions before they are published: `elements` are those of leaf `leaf`, of the dtype of
    /// the space, row-major.
    ///
    /// Discrete actions must be in range. A `Box` refuses only NaN: Gymnasium's environments clip
    /// values that are out of bounds, and so do these.
    ///
    /// # Errors
    ///
    /// [`Error::ActionOutOfRange`] with the first bad row.
    ///
    /// # Panics
    ///
    /// When the leaf does not exist.
    pub fn check_actions(&self, leaf: usize, elements: &[u8]) -> Result<(), Error> {
        let dtype = match self.array(leaf) {
            Self::Box { dtype, .. } => *dtype,
            Self::MultiBinary(_) => DType::I8,
            _ => DType::I64,
        };
        self.check_actions_of(leaf, dtype, elements)
    }

    /// [`Space::check_actions`] of elements of this dtype, which may be another float than that of a
    /// `Box`.
    ///
    /// # Errors
    ///
    /// As [`Space::check_actions`].
    ///
    /// # Panics
    ///
    /// As [`Space::check_actions`].
    pub fn check_actions_of(
        &self,
        leaf: usize,
        dtype: DType,
        elements: &[u8],
    ) -> Result<(), Error> {
        let space = self.array(leaf);
        let bad = match space {
            Self::Discrete { n, start } => first_outside(elements, &[(*start, *n)]),
            Self::MultiDiscrete { counts, starts, .. } => {
                let ranges: Vec<_> = starts.iter().copied().zip(counts.iter().copied()).collect();
                first_outside(elements, &ranges)
            }
            Self::MultiBinary(_) | Self::Box { dtype: DType::Bool, .. } => {
                elements.iter().position(|&bit| bit > 1)
            }
            Self::Box { .. } if dtype == DType::F32 => {
                first(elements, |bytes| f32::from_ne_bytes(bytes).is_nan())
            }
            Self::Box { .. } if dtype == DType::F64 => {
                first(elements, |bytes| f64::from_ne_bytes(bytes).is_nan())
            }
            _ => None,
        };
        let Some(at) = bad else {
            return Ok(());
        };
        let value = match space {
            Self::MultiBinary(_) | Self::Box { dtype: DType::Bool, .. } => elements[at].to_string(),
            Self::Box { .. } => "nan".to_owned(),
            _ => integer(&elements[8 * at..8 * at + 8]).to_string(),
        };
        let row_len = space.row_len().max(1);
        Err(Error::ActionOutOfRange { row: at / row_len, value, space: space.to_string() })
    }
}

/// A bound as a `float32` space stores it.
#[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
fn rounded(bound: f64) -> f64 {
    f64::from(bound as f32)
}

fn integer(bytes: &[u8]) -> i64 {
    i64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

/// The first of consecutive elements that is `wrong`.
fn first<const N: usize>(elements: &[u8], wrong: impl Fn([u8; N]) -> bool) -> Option<usize> {
    let (chunks, _) = elements.as_chunks::<N>();
    // Checks all of them without a branch; only a bad batch is searched.
    let any = chunks.iter().fold(false, |any, &bytes| any | wrong(bytes));
    any.then(|| chunks.iter().position(|&bytes| wrong(bytes)).expect("there is one"))
}

/// Negative if the value is outside the range `(start, count)`: baseline x86-64 cannot compare vectors of
/// 64-bit integers. The `place` of a value inside is from 0 to `count - 1`; only where it is negative the
/// difference may overflow.
#[expect(clippy::inline_always, reason = "takes on the instructions of its caller")]
#[inline(always)]
fn sign(value: i64, (start, count): (i64, i64)) -> i64 {
    let place = value.wrapping_sub(start);
    place | (count - 1).wrapping_sub(place)
}

/// The [signs](sign) of integers in one range, taken together.
struct Signs<'a> {
    integers: &'a [[u8; 8]],
    range: (i64, i64),
    all: &'a mut i64,
}

impl Loops for Signs<'_> {
    #[expect(clippy::inline_always, reason = "takes on the instructions of its caller")]
    #[inline(always)]
    fn run(self) {
        let integers = self.integers.iter().map(|&bytes| i64::from_ne_bytes(bytes));
        *self.all = integers.fold(0, |signs, value| signs | sign(value, self.range));
    }
}

/// Number of integers from which on vectors are faster.
const MANY: usize = 16;

/// The first integer outside its range, `(start, count)`; ranges repeat from row to row.
fn first_outside(elements: &[u8], ranges: &[(i64, i64)]) -> Option<usize> {
    let (integers, _) = elements.as_chunks();
    if let [range] = *ranges
        && integers.len() >= MANY
    {
        let mut signs = 0;
        simd::run(Signs { integers, range, all: &mut signs });
        if signs >= 0 {
            return None;
        }
    }
    let values = integers.iter().map(|&bytes| i64::from_ne_bytes(bytes));
    values.zip(ranges.iter().cycle()).position(|(value, &range)| sign(value, range) < 0)
}

impl fmt::Display for Space {
    /// The first part of Gymnasium's `repr`: enough to identify the space in a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Box { dtype, shape, .. } => write!(f, "Box({shape:?}, {})", dtype.name()),
            Self::Discrete { n, start: 0 } => write!(f, "Discrete({n})"),
            Self::Discrete { n, start } => write!(f, "Discrete({n}, start={start})"),
            Self::MultiDiscrete { counts, starts, .. }
                if starts.iter().all(|&start| start == 0) =>
            {
                write!(f, "MultiDiscrete({counts:?})")
            }
            Self::MultiDiscrete { counts, starts, .. } => {
                write!(f, "MultiDiscrete({counts:?}, start={starts:?})")
            }
            Self::MultiBinary(shape) => write!(f, "MultiBinary({shape:?})"),
            Self::Text(text) => write!(f, "Text({})", text.max_length),
            Self::Tuple(parts) => write!(f, "Tuple of {} spaces", parts.len()),
            Self::Dict(parts) => write!(f, "Dict of {} spaces", parts.len()),
        }
    }
}

/// The two spaces of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Spaces {
    /// The space of the observations that `observe` writes.
    pub observation: Space,
    /// The space of the actions that `step` reads.
    pub action: Space,
}

impl Spaces {
    /// Checks both spaces; an action is not a text.
    ///
    /// # Errors
    ///
    /// As [`Space::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.observation.check("observation")?;
        self.action.check("action")?;
        let mut texts = None;
        self.action.visit(&mut |space| {
            if matches!(space, Space::Text(_)) {
                texts = Some(space.to_string());
            }
        });
        texts.map_or(Ok(()), |text| {
            Err(Error::bad_options(format!("the action space has {text}: actions are numbers")))
        })
    }
}
