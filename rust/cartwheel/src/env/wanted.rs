//! What a view needs of its space.

use std::fmt;

use cartwheel_core::DType;
use cartwheel_core::space::Space;

/// What a view needs of its space.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub enum Wanted {
    /// An array of this element type, and of this shape in each row; `None` for any shape.
    Array(DType, Option<Vec<usize>>),
    /// An array of `float32` of any shape; as an action also one of `float64`.
    Floats,
    /// A `Tuple`, or a `Dict` in the order of its keys.
    Tuple(Vec<Wanted>),
    /// A `Dict` with these keys.
    Dict(Vec<(&'static str, Wanted)>),
}

impl Wanted {
    pub(super) fn fits(&self, space: &Space) -> bool {
        match (self, space) {
            (Self::Dict(wanted), Space::Dict(parts)) => {
                wanted.len() == parts.len()
                    && wanted
                        .iter()
                        .zip(parts)
                        .all(|((name, wanted), (key, part))| name == key && wanted.fits(part))
            }
            (Self::Tuple(wanted), Space::Tuple(parts)) => {
                wanted.len() == parts.len()
                    && wanted.iter().zip(parts).all(|(wanted, part)| wanted.fits(part))
            }
            (Self::Tuple(wanted), Space::Dict(parts)) => {
                wanted.len() == parts.len()
                    && wanted.iter().zip(parts).all(|(wanted, (_, part))| wanted.fits(part))
            }
            (Self::Floats, space) => Self::Array(DType::F32, None).fits(space),
            (Self::Array(dtype, shape), space) => match (space, space.leaves().as_slice()) {
                (Space::Tuple(_) | Space::Dict(_), _) => false,
                (_, [leaf]) => {
                    *dtype == leaf.dtype && shape.as_ref().is_none_or(|shape| *shape == leaf.shape)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Appends for each leaf whether it is [`Wanted::Floats`].
    pub(crate) fn floats(&self, leaves: &mut Vec<u8>) {
        match self {
            Self::Array(..) => leaves.push(0),
            Self::Floats => leaves.push(1),
            Self::Tuple(parts) => parts.iter().for_each(|part| part.floats(leaves)),
            Self::Dict(parts) => parts.iter().for_each(|(_, part)| part.floats(leaves)),
        }
    }
}

impl fmt::Display for Wanted {
    /// `{camera: uint8 of any shape, position: float32[3]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(dtype, Some(shape)) => write!(f, "{}{shape:?}", dtype.name()),
            Self::Array(dtype, None) => write!(f, "{} of any shape", dtype.name()),
            Self::Floats => Self::Array(DType::F32, None).fmt(f),
            Self::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Self::Dict(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|(name, part)| format!("{name}: {part}")).collect();
                write!(f, "{{{}}}", parts.join(", "))
            }
        }
    }
}

/// A space in the form in which [`Wanted`] is shown.
pub(super) fn shown(space: &Space) -> String {
    match space {
        Space::Tuple(parts) => {
            format!("({})", parts.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Space::Dict(parts) => {
            let parts = parts.iter().map(|(key, part)| format!("{key}: {}", shown(part)));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
        array => array.leaves().iter().map(ToString::to_string).collect(),
    }
}
