//! The space that a view needs.

use std::fmt;

use cartwheel_core::space::Space;
use cartwheel_core::{DType, Leaf};

/// The space that a view needs.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub enum Wanted {
    /// An array of this element type, and of this shape in each row; `None` for any shape.
    Array(DType, Option<Vec<usize>>),
    /// An array of `float32` of any shape; as an action also one of `float64`.
    Floats,
    /// A text.
    Text,
    /// A `Tuple`, or a `Dict` in the order of its keys.
    Tuple(Vec<Wanted>),
    /// A `Dict` with these keys.
    Dict(Vec<(&'static str, Wanted)>),
    /// The first if the leaves of the space are its own, else the second.
    Either(Box<[Wanted; 2]>, fn(&mut &[Leaf]) -> bool),
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
            (Self::Either(choices, is_first), space) => {
                choices[usize::from(!is_first(&mut space.leaves().as_slice()))].fits(space)
            }
            (Self::Text, space) => matches!(space, Space::Text(_)),
            (Self::Floats, space) => Self::Array(DType::F32, None).fits(space),
            (Self::Array(dtype, shape), space) => match (space, space.leaves().as_slice()) {
                (Space::Text(_) | Space::Tuple(_) | Space::Dict(_), _) => false,
                (_, [leaf]) => {
                    *dtype == leaf.dtype && shape.as_ref().is_none_or(|shape| *shape == leaf.shape)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The remedy for a type that does not fit `space`, for the usual mistakes.
    pub(super) fn remedy(&self, space: &Space) -> Option<String> {
        match (self, space) {
            (Self::Dict(wanted), Space::Dict(parts)) => {
                let mut names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
                let is_sorted = names.is_sorted();
                names.sort_unstable();
                let mut keys: Vec<&str> = parts.iter().map(|(key, _)| key.as_str()).collect();
                keys.sort_unstable();
                if names != keys {
                    return None; // the names say it
                }
                if !is_sorted {
                    let names = names.join(", ");
                    return Some(format!("order the fields alphabetically: {names}"));
                }
                let mut pairs = wanted.iter().zip(parts);
                pairs.find_map(|((_, wanted), (_, part))| wanted.remedy(part))
            }
            (Self::Tuple(wanted), Space::Tuple(parts)) if wanted.len() == parts.len() => {
                wanted.iter().zip(parts).find_map(|(wanted, part)| wanted.remedy(part))
            }
            (Self::Tuple(wanted), Space::Dict(parts)) if wanted.len() == parts.len() => {
                wanted.iter().zip(parts).find_map(|(wanted, (_, part))| wanted.remedy(part))
            }
            (Self::Array(..), Space::Text(_)) => Some("the type of a Text is `Text`".to_owned()),
            (Self::Array(dtype, _), Space::Discrete { .. }) if *dtype != DType::I64 => {
                Some("the type of a Discrete is `i64`".to_owned())
            }
            (Self::Array(dtype, _), Space::MultiDiscrete { .. }) if *dtype != DType::I64 => {
                Some("the elements of a MultiDiscrete are `i64`".to_owned())
            }
            _ => None,
        }
    }

    /// Whether options decide what it is.
    pub(crate) fn is_choice(&self) -> bool {
        match self {
            Self::Array(..) | Self::Text | Self::Floats => false,
            Self::Tuple(parts) => parts.iter().any(Self::is_choice),
            Self::Dict(parts) => parts.iter().any(|(_, part)| part.is_choice()),
            Self::Either(..) => true,
        }
    }

    /// Appends for each leaf whether it is [`Wanted::Floats`]; there is no choice in it.
    pub(crate) fn floats(&self, leaves: &mut Vec<u8>) {
        match self {
            Self::Array(..) | Self::Text | Self::Either(..) => leaves.push(0),
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
            Self::Text => f.write_str("text"),
            Self::Either(choices, _) => write!(f, "{} or {}", choices[0], choices[1]),
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
        Space::Text(_) => "text".to_owned(),
        array => array.leaves().iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, Space, Wanted};
    use crate::env::{Either, check};

    fn array(dtype: DType, shape: &[usize]) -> Wanted {
        Wanted::Array(dtype, Some(shape.to_vec()))
    }

    #[test]
    fn fields_in_another_order_than_the_keys_are_told_to_be_sorted() {
        let wanted = Wanted::Dict(vec![
            ("walls", array(DType::I64, &[])),
            ("player", array(DType::I64, &[])),
        ]);
        let part = || Space::discrete(2);
        let space = Space::dict([("walls", part()), ("player", part())]);
        assert!(!wanted.fits(&space));
        let remedy = "order the fields alphabetically: player, walls";
        assert_eq!(wanted.remedy(&space).as_deref(), Some(remedy));
        let nested = Wanted::Tuple(vec![wanted]);
        assert_eq!(nested.remedy(&Space::Tuple(vec![space])).as_deref(), Some(remedy));
        let other = Space::dict([("exit", part()), ("walls", part())]);
        assert_eq!(array(DType::I64, &[]).remedy(&other), None);
    }

    #[test]
    fn a_discrete_that_is_not_i64_is_told_to_be() {
        let remedy = array(DType::I32, &[]).remedy(&Space::discrete(2));
        assert_eq!(remedy.as_deref(), Some("the type of a Discrete is `i64`"));
        let remedy = array(DType::U8, &[2]).remedy(&Space::multi_discrete(&[3, 3]));
        assert_eq!(remedy.as_deref(), Some("the elements of a MultiDiscrete are `i64`"));
        assert_eq!(array(DType::I64, &[3]).remedy(&Space::multi_discrete(&[3, 3])), None);
    }

    #[test]
    fn a_choice_that_takes_leaves_of_the_next_part_is_refused() {
        let space = Space::Tuple(vec![Space::discrete(2), Space::discrete(2)]);
        check::<(Either<i64, (i64, i64)>, i64)>("observation", &space).unwrap();
        let error = check::<(Either<(i64, i64), i64>, i64)>("observation", &space).unwrap_err();
        assert!(error.to_string().contains("put the other choice first"), "{error}");
    }
}
