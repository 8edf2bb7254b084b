//! The keywords of levels.

use cartwheel::{EnvOptions, Error};
use serde::{Deserialize, Serialize};

/// Keywords that every level has.
#[derive(Debug, Clone)]
pub struct Common {
    pub max_steps: Option<i64>,
    pub see_through_walls: Option<bool>,
    pub agent_view_size: usize,
    pub highlight: bool,
    pub tile_size: usize,
    pub agent_pov: bool,
    pub observation: Option<Wrappers>,
    pub observation_tile_size: usize,
    pub max_str_len: usize,
}

/// The keywords of a level.
pub trait LevelOptions: EnvOptions {
    /// Those that every level has.
    fn common(&self) -> Common;
}

/// Makes the keywords of a level: its own, then those that every level has.
macro_rules! level_options {
    ($(#[$meta:meta])* pub struct $options:ident { $($own:tt)* }) => {
        cartwheel::options! {
            $(#[$meta])*
            #[expect(non_snake_case, reason = "the names of the original")]
            pub struct $options {
                $($own)*
                /// Steps after which an episode is truncated; `None` for the level's own number.
                max_steps: Option<i64>,
                /// Whether the agent sees what is behind walls; `None` for the level's own rule.
                see_through_walls: Option<bool>,
                /// Columns and rows of the image, an odd number from 3 to 63.
                agent_view_size: usize = 7,
                /// Whether frames show which cells the agent sees.
                highlight: bool = true,
                /// Pixels along a side of a cell in frames.
                tile_size: usize = 32,
                /// Whether frames show what the agent sees instead of the whole grid.
                agent_pov: bool,
                /// A wrapper of the package, or several as a list: "full" (FullyObsWrapper), "one_hot"
                /// (OneHotPartialObsWrapper), "rgb" (RGBImgObsWrapper), "rgb_partial"
                /// (RGBImgPartialObsWrapper) or "symbolic" (SymbolicObsWrapper), then "image"
                /// (ImgObsWrapper) or "flat" (FlatObsWrapper).
                observation: Option<$crate::options::Wrappers>,
                /// Pixels along a side of a cell in observations that are pictures.
                observation_tile_size: usize = 8,
                /// Letters of a mission in flat observations; a longer mission is an error.
                maxStrLen: usize = 96,
            }
        }

        impl $crate::options::LevelOptions for $options {
            fn common(&self) -> $crate::options::Common {
                $crate::options::Common {
                    max_steps: self.max_steps,
                    see_through_walls: self.see_through_walls,
                    agent_view_size: self.agent_view_size,
                    highlight: self.highlight,
                    tile_size: self.tile_size,
                    agent_pov: self.agent_pov,
                    observation: self.observation.clone(),
                    observation_tile_size: self.observation_tile_size,
                    max_str_len: self.maxStrLen,
                }
            }
        }
    };
}
pub(crate) use level_options;

level_options! {
    /// Keywords of a level that has no others.
    pub struct CommonOptions {}
}

/// The keyword `observation`: a wrapper, or several in the order in which they wrap.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "`observation` must be the name of a wrapper or a list of names")]
pub enum Wrappers {
    /// `"image"`.
    One(String),
    /// `["full", "image"]`.
    Several(Vec<String>),
}

/// Refuses a keyword unless it is in order.
pub(crate) fn require(
    holds: bool,
    name: &str,
    wanted: &str,
    got: impl std::fmt::Debug,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::bad_options(format!("`{name}` must be {wanted}, got {got:?}")))
}
