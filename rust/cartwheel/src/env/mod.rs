//! The contract with a simulator: what the author of an environment writes.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Env`] | one environment |
//! | [`Shared`] | what all environments of a kind share |
//! | [`View`], [`Flat`], [`Floats`], [`Text`] | actions and observations as Rust types, in place |
//! | [`Info`], [`InfoValue`], [`List`] | infos as Rust types |
//! | [`Parameter`], [`ParameterValue`], [`Tuned`] | attributes by name, and constants that rows share |
//! | [`State`] | saved states |
//! | [`AgentFlags`] | who of several agents is there |
//! | [`Frame`], [`RenderMode`] | rendering |
//! | [`Block`] | neighboring rows, stepped at once |

mod agents;
mod block;
mod cell;
mod either;
mod floats;
mod info;
mod leaves;
mod parameter;
mod render;
mod shared;
mod state;
mod text;
mod tuned;
mod value;
mod view;
mod wanted;

use std::fmt::Debug;
use std::sync::Arc;

use cartwheel_core::rng::Rng;
use cartwheel_core::space::Spaces;
use cartwheel_core::{Error, Transition};
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::EnvOptions;

pub use agents::AgentFlags;
pub use block::Block;
#[cfg(feature = "engine")]
pub(crate) use cell::bytes_of;
pub use cell::{Cell, Slot};
pub use either::Either;
pub use floats::{Floats, FloatsRef};
pub use info::{Info, InfoValue, List};
pub use leaves::{Arrays, Leaves, LeavesMut};
pub use parameter::{Parameter, wrong};
pub use render::{Frame, RenderMode};
pub use shared::Shared;
pub use state::{State, all_read};
pub use text::{Text, TextMut, Texts};
pub use tuned::{Standard, Tuned};
pub use value::{ParameterArray, ParameterValue};
pub(crate) use view::check;
pub use view::{Flat, Store, View};
pub use wanted::Wanted;

/// One environment.
///
/// `reset` and `step` change the state, `observe` and `info` only read it. So the terminal
/// observation can be kept before a reset, a row that is not reset can be shown again, and a saved
/// state is complete. A value that `step` computes and `observe` or `info` returns is part of the
/// state.
///
/// Nothing here allocates unless the author's code does. A failure or a panic in a method fails its
/// row, and no other; the row can be stepped again after a reset.
pub trait Env: Sized + Send + 'static {
    /// Keywords of the constructor: a struct made by [`options!`](crate::options!), or one that
    /// derives `Deserialize` with `#[serde(deny_unknown_fields, default)]` and implements
    /// [`EnvOptions`]. Unknown and ill-typed keywords are errors that name them. One whose name begins
    /// with an underscore names something of this process: a saved state may be loaded where it differs.
    type Options: EnvOptions;
    /// The options of `reset(options=…)`, made likewise; [`NoOptions`] for none. Check
    /// values with `#[serde(try_from = …)]`, so that bad ones are refused before any row is reset.
    type ResetOptions: EnvOptions;
    /// The type of an action; [`View`] has the choice.
    type Action: View;
    /// The type of an observation.
    type Observation: View;
    /// The type that [`Env::info`] returns: `()`, or a struct made by [`info!`](macro@crate::info).
    type Info: Info;

    /// Data that all environments of one kind share: tables, levels, models. `()` for nothing.
    type Shared: Shared<Self::Options>;

    /// The spaces under these options, which [`Env::new`] has accepted. They must fit `Action` and
    /// `Observation`.
    fn spaces(options: &Self::Options, shared: &Self::Shared) -> Spaces;

    /// The names of the agents of an environment of several, in the order of their dimension. None,
    /// the default, is an environment of one.
    ///
    /// One that names its agents can be made as `cartwheel.ParallelVectorEnv.native(…)`, with
    /// dictionaries by agent; elsewhere it stays what its spaces say. Its observation space is a
    /// `Dict` with these keys, and others that are its own:
    ///
    /// | key | space | contents |
    /// |---|---|---|
    /// | `agents` | any; the first dimension of each leaf is the agents; or a `Dict` with their names as keys | their observations, zeros for those that are not there |
    /// | `flags` | [`AgentFlags::space`], as a [`Flat<i8>`](Flat) | [`AgentFlags`] |
    /// | `rewards` | `Box` of `f64[agents]` | each agent's reward of the last step, 0 after a reset |
    /// | `state` | any; may be left out | the state of the whole environment, for critics |
    ///
    /// The first dimension of each leaf of the action space is the agents, too, or it is a `Dict` with
    /// their names as keys. Spaces of agents may differ: as parts of such a `Dict`, or along the dimension,
    /// as in a `MultiDiscrete` of 3 and 5 actions. Actions of agents that are not there are ignored. The
    /// reward of a transition is that of the row, such as the sum;
    /// it is terminated when no agent is left. Agents that live when it is terminated or truncated end
    /// with it.
    fn agents(options: &Self::Options, shared: &Self::Shared) -> Vec<String> {
        let _ = (options, shared);
        Vec::new()
    }

    /// One environment, not yet reset; [`Env::observe`] must work on it nevertheless.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], made by [`Error::bad_options`], when the value of an option is
    /// invalid.
    fn new(options: &Self::Options, shared: &Arc<Self::Shared>) -> Result<Self, Error>;

    /// Begins an episode. All randomness comes from `rng`, which the caller has seeded on request.
    ///
    /// # Errors
    ///
    /// A [`Failure`] fails the row: the caller gets its text, and other rows go on.
    fn reset(&mut self, rng: &mut Rng, options: &Self::ResetOptions) -> Result<(), Failure>;

    /// One step.
    ///
    /// The caller of a table of environments has checked the action: it is in its space, except
    /// that a `Box` may be exceeded (Gymnasium's environments clip), by anything but NaN. Rust code
    /// that calls `step` directly checks with
    /// [`Space::check_actions`](crate::Space::check_actions). A bad action is never undefined
    /// behavior: at worst it panics, which fails the row.
    ///
    /// # Errors
    ///
    /// As [`Env::reset`].
    fn step(&mut self, action: ActionOf<'_, Self>, rng: &mut Rng) -> Result<Transition, Failure>;

    /// [`Env::step`], with the environment that is probably stepped `next` on this thread.
    ///
    /// Override it when environments have much memory outside of their values, such as the data of a
    /// simulator: let the processor load that of `next` into its cache while this one is stepped. The result is
    /// that of [`Env::step`], to the last bit.
    ///
    /// # Errors
    ///
    /// As [`Env::reset`].
    #[inline]
    fn step_before(
        &mut self,
        action: ActionOf<'_, Self>,
        rng: &mut Rng,
        next: Option<&Self>,
    ) -> Result<Transition, Failure> {
        let _ = next;
        self.step(action, rng)
    }

    /// Maximum number of rows that [`Env::step_block`] gets at once. At 1, the default,
    /// [`Env::step`] is called for each row instead.
    const BLOCK: usize = 1;

    /// Steps the running rows of a block, with the same result for each as [`Env::step`], to the
    /// last bit.
    ///
    /// Override it, with [`Env::BLOCK`], when several rows go through the same arithmetic: a state
    /// that is a structure of arrays can be stepped by vector instructions. [`Env::step`] steps the
    /// rows that this method leaves without a transition, because they are special cases, because
    /// they fail, or because it panicked.
    fn step_block(block: &mut BlockOf<'_, '_, Self>) {
        let _ = block;
    }

    /// Writes the observation of the present state: all of it, since the memory holds an older one.
    fn observe(&self, observation: ObservationOf<'_, Self>);

    /// The info of the reset or step before.
    fn info(&self) -> Self::Info;

    /// Whether [`Env::save`] and [`Env::load`] are there; [`state!`](crate::state) writes all three.
    const SAVES: bool = false;

    /// Appends the state: everything that steps, resets, observations and infos depend on.
    fn save(&self, state: &mut Vec<u8>) {
        let _ = state;
    }

    /// Continues as the environment did whose state was saved, one of the same kind.
    ///
    /// # Errors
    ///
    /// A [`Failure`] when these bytes are not a state. The caller restores the old state.
    fn load(&mut self, state: &[u8]) -> Result<(), Failure> {
        let _ = state;
        Err(Failure::new("this environment does not save its state"))
    }

    /// The ways in which [`Env::render`] can render.
    const RENDER: &'static [RenderMode] = &[];

    /// Frames per second of videos and windows: `metadata["render_fps"]`.
    const RENDER_FPS: u32 = 30;

    /// Draws the present state, as [`Frame::mode`] wants it.
    ///
    /// # Errors
    ///
    /// A [`Failure`] when it cannot be drawn.
    fn render(&self, frame: &mut Frame) -> Result<(), Failure> {
        Err(Failure::new(format!("this environment does not render {:?}", frame.mode())))
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

    /// Whether the present value of this parameter goes with the rest of the state. Called after the
    /// parameter took a value; its type has checked what does not depend on others.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`], best made by [`wrong`], for a value that does not; then
    /// the parameter gets its old one back.
    ///
    /// ```
    /// # use cartwheel::{Error, Parameter};
    /// # struct Walk { size: i64, place: i64 }
    /// # impl Walk {
    /// fn check_parameter(&self, name: &str) -> Result<(), Error> {
    ///     if name == "place" && !(0..self.size).contains(&self.place) {
    ///         let wanted = format!("from 0 to {}", self.size - 1);
    ///         return Err(cartwheel::wrong(&wanted, &self.place.get()));
    ///     }
    ///     Ok(())
    /// }
    /// # }
    /// # assert!(Walk { size: 3, place: 2 }.check_parameter("place").is_ok());
    /// # let refused = Walk { size: 3, place: 3 }.check_parameter("place");
    /// # assert_eq!(refused.unwrap_err().to_string(), "must be from 0 to 2, got 3");
    /// ```
    fn check_parameter(&self, name: &str) -> Result<(), Error> {
        let _ = name;
        Ok(())
    }

    /// Called after a parameter was set or refused a value, to update what was computed from it and
    /// to [settle](Tuned::settle) constants that rows share.
    fn parameters_changed(&mut self) {}
}

/// The action of one row, as [`Env::step`] takes it.
pub type ActionOf<'a, E> = <<E as Env>::Action as View>::Ref<'a>;

/// The place of one row's observation, as [`Env::observe`] takes it.
pub type ObservationOf<'a, E> = <<E as Env>::Observation as View>::Mut<'a>;

/// Neighboring rows, as [`Env::step_block`] takes them.
pub type BlockOf<'a, 'r, E> = Block<'a, 'r, E, <E as Env>::Action>;

/// The name of an identifier; `r#type`, as a word of Rust is written, is named `type`.
#[doc(hidden)]
pub const fn name(ident: &'static str) -> &'static str {
    if let [b'r', b'#', ..] = ident.as_bytes() { ident.split_at(2).1 } else { ident }
}

/// No options: any keyword is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

impl EnvOptions for NoOptions {}
