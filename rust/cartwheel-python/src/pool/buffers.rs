//! XLA's buffers in a call of a compiled function: their checks, and the reasons why there is no result.

use std::fmt;

use cartwheel_engine::Error;
use cartwheel_engine::space::{ActionTag, DType, Leaf};

use crate::native::PyNativeEnvs;
use crate::pool::elements::can_read;
use crate::xla::{Argument, ErrorCode, Frame, ResultBuffer};

/// The reason why a call has no result.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
}

impl Refused {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Env(_)
            | Error::WrongActionDType { .. }
            | Error::NoSuchRow { .. }
            | Error::NamedTwice(_) => ErrorCode::InvalidArgument,
            Error::Timeout { .. } => ErrorCode::DeadlineExceeded,
            Error::Failed { .. } | Error::Panicked { .. } | Error::Plugin { .. } => {
                ErrorCode::Internal
            }
            _ => ErrorCode::FailedPrecondition,
        };
        let way_out = match &error {
            Error::EpisodeOver { .. } => ": `reset(state, mask)` begins their next episodes",
            Error::NeverReset { .. } | Error::NeedsReset { .. } => ": `init()` resets all rows",
            Error::NoEpisode { .. } => ": `reset()` them first",
            Error::Timeout { .. } => "; a reset waits for them and drops their results",
            Error::AlreadyPending { .. } => ", begun outside of the compiled function: wait for it",
            _ => "",
        };
        Self { code, text: format!("{error}{way_out}") }
    }
}

/// Refuses a buffer unless it has these dimensions, `rows` of them first.
pub(super) fn check_dims(
    what: fmt::Arguments<'_>,
    dims: &[i64],
    rows: usize,
    shape: &[usize],
) -> Result<(), Refused> {
    let fits = |dim: i64, wanted: usize| usize::try_from(dim) == Ok(wanted);
    if dims.len() == shape.len() + 1
        && fits(dims[0], rows)
        && dims[1..].iter().zip(shape).all(|(&dim, &wanted)| fits(dim, wanted))
    {
        return Ok(());
    }
    let shape: Vec<_> = std::iter::once(rows).chain(shape.iter().copied()).collect();
    Err(other_pool(&format!("{what} has shape {dims:?}, expected {shape:?}")))
}

/// The error for code that was compiled for another pool.
pub(crate) fn other_pool(what: &str) -> Refused {
    let text = format!("{what}: the function was compiled for other environments");
    Refused::new(ErrorCode::InvalidArgument, text)
}

/// An argument of a dtype and dimensions that the interface fixes.
pub(super) fn fixed<'f>(
    frame: &'f Frame<'_>,
    at: usize,
    dtype: DType,
    dims: &[Option<i64>],
) -> Result<Argument<'f>, Refused> {
    let argument = frame.argument(at);
    let fits = |(dim, wanted): (&i64, &Option<i64>)| wanted.is_none_or(|wanted| wanted == *dim);
    if argument.dtype == dtype
        && argument.dims.len() == dims.len()
        && argument.dims.iter().zip(dims).all(fits)
    {
        return Ok(argument);
    }
    let (name, got) = (argument.dtype.name(), argument.dims);
    Err(other_pool(&format!("argument {at} is {name} of shape {got:?}")))
}

/// The tag of actions of this dtype for a leaf, as for a step outside of compiled functions; `None` if
/// they are of another kind.
pub(super) fn tag_of(
    native: &PyNativeEnvs,
    number: usize,
    leaf: &Leaf,
    dtype: DType,
) -> Option<ActionTag> {
    let as_they_are = native.action_floats().get(number) == Some(&true);
    if as_they_are && matches!(dtype, DType::F32 | DType::F64) {
        return Some(ActionTag::Array(dtype));
    }
    can_read(dtype, leaf.dtype).then_some(ActionTag::Array(leaf.dtype))
}

/// The `u32` words of an argument.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u32::from_ne_bytes(*word))
}

/// Writes bytes to a result of as many.
pub(super) fn put(into: ResultBuffer<'_>, bytes: impl IntoIterator<Item = u8>) {
    for (place, byte) in into.bytes.iter_mut().zip(bytes) {
        place.write(byte);
    }
}
