//! Whether observations lie in their spaces.

use cartwheel_core::DType;
use cartwheel_core::space::{Bounds, Space, TextSpace};

/// The first element of a leaf's row that is outside its space, and the space, in words.
pub(super) fn outside(space: &Space, bytes: &[u8]) -> Option<String> {
    match space {
        Space::Box { dtype, low, high, .. } => {
            let (at, value) = first_outside(*dtype, bytes, low, high)?;
            Some(format!("element {at} is {value}, outside {space}"))
        }
        Space::MultiBinary(_) => {
            let at = bytes.iter().position(|&bit| bit > 1)?;
            Some(format!("element {at} is {}, outside {space}", bytes[at].cast_signed()))
        }
        Space::Text(text) => match TextSpace::read(bytes) {
            Some(shown) => text.misfit(shown).map(|what| format!("{what}, outside {space}")),
            None => Some("it is not a text".to_owned()),
        },
        // The check for actions is exact for integers.
        _ => space.check_actions(0, bytes).err().map(|error| match error {
            crate::Error::ActionOutOfRange { value, space, .. } => {
                format!("it is {value}, outside {space}")
            }
            other => other.to_string(),
        }),
    }
}

fn first_outside(
    dtype: DType,
    bytes: &[u8],
    low: &Bounds,
    high: &Bounds,
) -> Option<(usize, String)> {
    let (low, high) = (low.elements(dtype).ok()?, high.elements(dtype).ok()?);
    macro_rules! of {
        ($type:ident) => {{
            let numbers = |bytes: &[u8]| -> Vec<$type> {
                bytes
                    .chunks_exact(size_of::<$type>())
                    .map(|bytes| $type::from_ne_bytes(bytes.try_into().expect("an element")))
                    .collect()
            };
            let (low, high) = (numbers(&low), numbers(&high));
            let mut values = numbers(bytes).into_iter().enumerate();
            let bound = |bounds: &[$type], at: usize| bounds[at % bounds.len()];
            values
                .find(|&(at, value)| !(bound(&low, at)..=bound(&high, at)).contains(&value))
                .map(|(at, value)| (at, value.to_string()))
        }};
    }
    match dtype {
        DType::Bool | DType::U8 => of!(u8),
        DType::I8 => of!(i8),
        DType::I16 => of!(i16),
        DType::I32 => of!(i32),
        DType::I64 => of!(i64),
        DType::U16 => of!(u16),
        DType::U32 => of!(u32),
        DType::U64 => of!(u64),
        DType::F32 => of!(f32),
        DType::F64 => of!(f64),
        DType::F16 | DType::C64 | DType::C128 => None,
    }
}
