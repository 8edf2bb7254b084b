//! Options of a reset that an environment does not have.

use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Options of a reset that an environment does not have. They are ignored, as in Gymnasium, where
/// several environments may share one dictionary.
///
/// An option that looks like a mask is refused: a misspelt `reset_mask` would reset every row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Ignored;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options of a reset")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Ignored, M::Error> {
                while let Some((name, IgnoredAny)) = map.next_entry::<String, _>()? {
                    if name.to_lowercase().contains("mask") {
                        return Err(M::Error::custom(format!(
                            "there is no option {name:?}: the rows to reset are `reset_mask`"
                        )));
                    }
                }
                Ok(Ignored)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
