//! Elements of XLA's buffers: JAX has no 64-bit numbers unless it is told to, so batches are narrowed
//! and actions are widened where they are copied.

use std::mem::MaybeUninit;

use cartwheel_core::Error as EnvError;
use cartwheel_engine::Error;
use cartwheel_engine::memory::Lease;
use cartwheel_engine::space::DType;

use crate::xla::ResultBuffer;

/// Wide elements that are narrowed at once, in a buffer on the stack.
const AT_ONCE: usize = 64;

/// The dtype that JAX has instead, if it has no 64-bit numbers: `jax.dtypes.canonicalize_dtype`.
const fn narrowed(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F32,
        DType::I64 => DType::I32,
        DType::U64 => DType::U32,
        DType::C128 => DType::C64,
        other => other,
    }
}

/// Whether elements of `from` can be written to a result of `to`.
pub(super) fn can_write(from: DType, to: DType) -> bool {
    to == from || to == narrowed(from)
}

/// Writes elements of `from`, from byte `offset` of a batch on, to a result for which that
/// [is possible](can_write); rounded or cut as by NumPy's `astype`.
pub(super) fn write(lease: &Lease, offset: usize, from: DType, into: ResultBuffer<'_>) {
    let ResultBuffer { dtype, bytes, .. } = into;
    if from == DType::Bool {
        // A flag may be any byte; those of XLA may not.
        for flag in lease.read_new(offset, bytes) {
            *flag = u8::from(*flag != 0);
        }
    } else if dtype == from {
        lease.read_new(offset, bytes);
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "as `astype` does")]
        match from {
            DType::F64 | DType::C128 => {
                narrow(lease, offset, bytes, |wide| {
                    (f64::from_ne_bytes(wide) as f32).to_ne_bytes()
                });
            }
            _ => {
                narrow(lease, offset, bytes, |wide| {
                    (u64::from_ne_bytes(wide) as u32).to_ne_bytes()
                });
            }
        }
    }
}

/// Fills `into` with elements of half the size.
fn narrow(
    lease: &Lease,
    mut offset: usize,
    into: &mut [MaybeUninit<u8>],
    narrow: impl Fn([u8; 8]) -> [u8; 4],
) {
    let mut room = [MaybeUninit::uninit(); AT_ONCE * 8];
    for into in into.chunks_mut(AT_ONCE * 4) {
        let wide = lease.read_new(offset, &mut room[..into.len() * 2]);
        offset += wide.len();
        let (places, _) = into.as_chunks_mut::<4>();
        let (elements, _) = wide.as_chunks::<8>();
        for (place, element) in places.iter_mut().zip(elements) {
            *place = narrow(*element).map(MaybeUninit::new);
        }
    }
}

/// Reads one integer of a dtype, from its bytes.
type ReadInteger = fn(&[u8]) -> i128;

/// The function that reads integers or truth values of this dtype.
fn reader(dtype: DType) -> Option<ReadInteger> {
    macro_rules! read {
        ($integer:ty) => {
            |bytes| bytes.try_into().map_or(0, |bytes| <$integer>::from_ne_bytes(bytes).into())
        };
    }
    Some(match dtype {
        DType::Bool | DType::U8 => read!(u8),
        DType::U16 => read!(u16),
        DType::U32 => read!(u32),
        DType::U64 => read!(u64),
        DType::I8 => read!(i8),
        DType::I16 => read!(i16),
        DType::I32 => read!(i32),
        DType::I64 => read!(i64),
        _ => return None,
    })
}

/// Whether actions of `from` can be read as those of a space of `to`: equal dtypes, integers of
/// every size, floats of 32 and 64 bits, and complex numbers of less.
pub(super) fn can_read(from: DType, to: DType) -> bool {
    let is_float = |dtype| matches!(dtype, DType::F32 | DType::F64);
    from == to
        || (is_float(from) && is_float(to))
        || (from == DType::C64 && to == DType::C128)
        || (to != DType::Bool && reader(from).is_some() && reader(to).is_some())
}

/// Reads actions of `from`, which [can be read](can_read), as those of `to`, of `rows` rows.
///
/// # Errors
///
/// [`EnvError::ActionOutOfRange`] for integers that `to` does not have.
pub(super) fn read(
    (from, to): (DType, DType),
    given: &[u8],
    room: &mut [u8],
    rows: usize,
) -> Result<(), Error> {
    #[expect(clippy::cast_possible_truncation, reason = "as `astype` does")]
    match (from, to) {
        (from, to) if from == to => room.copy_from_slice(given),
        (DType::I32, DType::I64) => {
            each(given, room, |bytes| i64::from(i32::from_ne_bytes(bytes)).to_ne_bytes());
        }
        (DType::F32, DType::F64) | (DType::C64, DType::C128) => {
            each(given, room, |bytes| f64::from(f32::from_ne_bytes(bytes)).to_ne_bytes());
        }
        (DType::F64, DType::F32) => {
            each(given, room, |bytes: [u8; 8]| (f64::from_ne_bytes(bytes) as f32).to_ne_bytes());
        }
        _ => return read_integers((from, to), given, room, rows),
    }
    Ok(())
}

/// Converts each element.
fn each<const N: usize, const M: usize>(
    given: &[u8],
    room: &mut [u8],
    convert: impl Fn([u8; N]) -> [u8; M],
) {
    let (given, _) = given.as_chunks();
    let (room, _) = room.as_chunks_mut();
    room.iter_mut().zip(given).for_each(|(place, element)| *place = convert(*element));
}

fn read_integers(
    (from, to): (DType, DType),
    given: &[u8],
    room: &mut [u8],
    rows: usize,
) -> Result<(), Error> {
    let (Some(read), Some(read_back)) = (reader(from), reader(to)) else {
        unreachable!("{} cannot be read as {}", from.name(), to.name());
    };
    let elements = given.len() / from.size();
    let places = room.chunks_exact_mut(to.size());
    for (at, (place, element)) in places.zip(given.chunks_exact(from.size())).enumerate() {
        let value = read(element);
        let bytes = value.to_le_bytes();
        place.copy_from_slice(&bytes[..to.size()]);
        #[cfg(target_endian = "big")]
        place.reverse();
        if read_back(place) != value {
            let (row, space) = (at * rows / elements, to.name().to_owned());
            let value = value.to_string();
            return Err(EnvError::ActionOutOfRange { row, value, space }.into());
        }
    }
    Ok(())
}
