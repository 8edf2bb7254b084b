//! Integers that become `int64` while they are copied.

use cartwheel_engine::space::DType;
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::array::copy_bytes;

/// Integers that are widened at once, in a room on the stack.
const AT_ONCE: usize = 64;

/// Whether a dtype has integers of at most four bytes, or truth values.
pub(super) fn is_narrow(dtype: DType) -> bool {
    use DType::{Bool, I8, I16, I32, U8, U16, U32};
    matches!(dtype, Bool | I8 | I16 | I32 | U8 | U16 | U32)
}

/// Copies integers of dtype `from`, one of those that [are narrow](is_narrow), as `int64`, from byte
/// `offset` of the wide ones on, until `room` is full.
pub(super) fn copy_widened(
    from: DType,
    array: &Bound<'_, PyUntypedArray>,
    offset: usize,
    room: &mut [u8],
) {
    let mut narrow = [0_u8; AT_ONCE * 4];
    let mut at = offset / 8 * from.size();
    for room in room.chunks_mut(AT_ONCE * 8) {
        let narrow = &mut narrow[..room.len() / 8 * from.size()];
        copy_bytes(array, at, narrow);
        at += narrow.len();
        let (places, _) = room.as_chunks_mut();
        match from {
            DType::I8 => widen(places, narrow, i8::from_ne_bytes),
            DType::I16 => widen(places, narrow, i16::from_ne_bytes),
            DType::I32 => widen(places, narrow, i32::from_ne_bytes),
            DType::Bool => widen(places, narrow, |[flag]: [u8; 1]| u8::from(flag != 0)),
            DType::U8 => widen(places, narrow, u8::from_ne_bytes),
            DType::U16 => widen(places, narrow, u16::from_ne_bytes),
            DType::U32 => widen(places, narrow, u32::from_ne_bytes),
            _ => unreachable!("{from:?} is not narrow"),
        }
    }
}

fn widen<const N: usize, T: Into<i64>>(
    places: &mut [[u8; 8]],
    narrow: &[u8],
    number: fn([u8; N]) -> T,
) {
    let (numbers, _) = narrow.as_chunks();
    for (place, bytes) in places.iter_mut().zip(numbers) {
        *place = number(*bytes).into().to_ne_bytes();
    }
}
