//! The contract with a simulator: what the author of a native environment writes.
//!
//! An [`Env`] is one environment. cartwheel holds a row of them for each worker and calls them in a
//! loop that is compiled for the type, so a step costs what the environment costs. cartwheel
//! handles autoreset, time limits, seeds, threads, masks and the layout in memory.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Space`], [`Spaces`] | Gymnasium's spaces with bounds, and the check of a batch of actions |
//! | [`View`], [`Flat`] | actions and observations as Rust types, in place |
//! | [`Info`], [`InfoValue`] | infos as Rust types |
//! | [`Parameter`], [`ParameterValue`], [`Tuned`] | attributes by name, and constants that rows share |
//! | [`Block`] | neighbouring rows of a shard, stepped at once |
//!
//! ```
//! use cartwheel_engine::Transition;
//! use cartwheel_engine::env::{Bounds, Env, NoOptions, Space, Spaces};
//! use cartwheel_engine::rng::Rng;
//!
//! /// Walk to the end of a corridor.
//! struct Corridor {
//!     length: f32,
//!     position: f32,
//! }
//!
//! #[derive(Debug, Default, serde::Deserialize)]
//! #[serde(deny_unknown_fields, default)]
//! struct Options {
//!     /// Metres beyond the first ten.
//!     extra: f32,
//! }
//!
//! impl Env for Corridor {
//!     type Options = Options;
//!     type ResetOptions = NoOptions;
//!     type Action = i64;
//!     type Observation = [f32; 1];
//!     type Info = ();
//!
//!     fn spaces(_: &Options) -> Spaces {
//!         Spaces { observation: Space::float_box(&[0.0], &[f64::INFINITY]), action: Space::discrete(2) }
//!     }
//!
//!     fn new(options: &Options) -> Result<Self, cartwheel_core::Error> {
//!         if options.extra < 0.0 {
//!             return Err(cartwheel_core::Error::bad_options(format!("extra is {}", options.extra)));
//!         }
//!         Ok(Self { length: 10.0 + options.extra, position: 0.0 })
//!     }
//!
//!     fn reset(&mut self, rng: &mut Rng, _: &NoOptions) {
//!         self.position = rng.random_f32();
//!     }
//!
//!     fn step(&mut self, action: i64, _: &mut Rng) -> Transition {
//!         self.position += if action == 1 { 1.0 } else { -1.0 };
//!         let terminated = self.position >= self.length;
//!         Transition { reward: -1.0, terminated, truncated: false }
//!     }
//!
//!     fn observe(&self, observation: &mut [f32; 1]) {
//!         observation[0] = self.position;
//!     }
//!
//!     fn info(&self) {}
//! }
//!
//! let recipe = cartwheel_engine::native::Recipe::<Corridor>::new(r#"{"extra": 2.5}"#).unwrap();
//! ```

mod block;
mod info;
mod parameter;
mod view;

use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use cartwheel_core::Error;
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

pub use block::Block;
pub use cartwheel_core::space::{Bounds, Space, Spaces};
pub use info::{Info, InfoValue};
pub use parameter::{Parameter, ParameterValue, Standard, Tuned, wrong};
pub(crate) use view::check;
pub use view::{Flat, View, Wanted};

/// One native environment.
///
/// `reset` and `step` change the state, `observe` and `info` only read it. So the terminal
/// observation can be kept before a reset, a row that is not reset can be shown again, and a
/// restored snapshot is complete. A value that `step` computes and `observe` or `info` returns is
/// part of the state.
///
/// Nothing here allocates unless the author's code does. A panic in a method fails the row, not the
/// pool; the row can be stepped again after a reset.
pub trait Env: Sized + Send + 'static {
    /// Keywords of the constructor. Derive `Deserialize` with `#[serde(deny_unknown_fields, default)]`:
    /// then unknown and ill-typed keywords are errors that name them.
    type Options: DeserializeOwned + Default + Debug + Send + Sync + 'static;
    /// The options of `reset(options=…)`, with the same derive; [`NoOptions`] for none. Check
    /// values with `#[serde(try_from = …)]`, so that bad ones are refused before any row is reset.
    type ResetOptions: DeserializeOwned + Default + Debug + Send + Sync + 'static;
    /// The type of an action; see [`crate::env::View`] for the choice.
    type Action: View;
    /// The type of an observation.
    type Observation: View;
    /// The type that [`Env::info`] returns: `()`, or a struct made by [`info!`](macro@crate::info).
    type Info: Info;

    /// The spaces under these options. They must match `Action` and `Observation`.
    fn spaces(options: &Self::Options) -> Spaces;

    /// One environment, not yet reset; [`Env::observe`] must work on it nevertheless.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], made by [`Error::bad_options`], when the value of an option is
    /// invalid.
    fn new(options: &Self::Options) -> Result<Self, Error>;

    /// Begins an episode. All randomness comes from `rng`, which the caller has seeded on request.
    fn reset(&mut self, rng: &mut Rng, options: &Self::ResetOptions);

    /// One step.
    ///
    /// The action was checked when it was stored, see [`crate::env::Space::check_actions`].
    fn step(&mut self, action: ActionOf<'_, Self>, rng: &mut Rng) -> Transition;

    /// Maximum number of rows that [`Env::step_block`] gets at once. At 1, the default,
    /// [`Env::step`] is called for each row instead.
    const BLOCK: usize = 1;

    /// Steps the running rows of a block, with the same result for each as [`Env::step`], to the
    /// last bit.
    ///
    /// Override it, with [`Env::BLOCK`], when several rows go through the same arithmetic: a state
    /// that is a structure of arrays can be stepped by vector instructions. [`Env::step`] steps the
    /// rows that this method leaves without a transition, because they are special cases or because
    /// it panicked.
    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        let _ = block;
    }

    /// Writes the observation of the present state: all of it, since the memory holds an older one.
    fn observe(&self, observation: ObservationOf<'_, Self>);

    /// The info of the reset or step before.
    fn info(&self) -> Self::Info;

    /// A copy that continues as this environment does, if the type supports it:
    /// `Some(self.clone())`.
    ///
    /// Without snapshots, a row whose parameters were set and that a reset leaves out shows its new
    /// state instead of the old one.
    fn snapshot(&self) -> Option<Self> {
        None
    }

    /// The names of the parameters; [`parameters!`](crate::parameters) writes this.
    fn parameters() -> &'static [&'static str] {
        &[]
    }

    /// The parameter of this name; [`parameters!`](crate::parameters) writes this.
    fn parameter(&self, name: &str) -> Option<&dyn Parameter> {
        let _ = name;
        None
    }

    /// The parameter of this name, for setting it; [`parameters!`](crate::parameters) writes this.
    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter> {
        let _ = name;
        None
    }

    /// Called after a parameter was set or refused a value, to update what was computed from it and
    /// to [settle](crate::env::Tuned::settle) constants that rows share.
    fn parameters_changed(&mut self) {}
}

/// The action of one row, as [`Env::step`] takes it.
pub type ActionOf<'a, E> = <<E as Env>::Action as View>::Ref<'a>;

/// The place of one row's observation, as [`Env::observe`] takes it.
pub type ObservationOf<'a, E> = <<E as Env>::Observation as View>::Mut<'a>;

/// Neighbouring rows, as [`Env::step_block`] takes them.
pub type BlockOf<'a, 'r, E> = Block<'a, 'r, E, <E as Env>::Action>;

/// No options: any keyword is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}
