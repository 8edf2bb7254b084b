//! Native environments: from an [`crate::env::Env`] to the rows of a pool.
//!
//! ```text
//! options (JSON) ─▶ Recipe<E> ─▶ NativeShard<E>, one a worker ─▶ pool
//!                                  │ Autoreset drives NativeRows: View (actions in, observations out)
//!                                  └ Mailbox: resets, parameters, snapshots, faults
//! ```
//!
//! | noun | what it is |
//! |---|---|
//! | [`Space`], [`Spaces`] | Gymnasium's spaces with bounds, and the check of a batch of actions |
//! | [`View`], [`Flat`] | actions and observations as Rust types, in place |
//! | [`Info`], [`InfoValue`] | infos as Rust types |
//! | [`Parameter`], [`Value`], [`Tuned`] | attributes by name, and constants that rows share |
//! | [`Stream`], [`Seed`] | the random stream of a row |
//! | [`Recipe`], [`AnyRecipe`] | a kind of environment with its options |
//! | [`NativeShard`] | the environments of one worker |
//! | [`Block`] | neighbouring rows of it, stepped at once |
//! | [`Mailbox`] | what owner and shard tell each other beside the batch |
//! | [`PlainLoops`] | environments with nothing around them, to measure what a pool adds |

mod block;
mod info;
mod mailbox;
mod pace;
mod parameter;
mod plain_loop;
mod recipe;
mod replacements;
mod rows;
mod sample;
mod shard;
mod space;
mod stream;
mod view;

pub use block::Block;
pub use info::{Info, InfoValue};
pub use mailbox::{Answer, Fault, Mailbox, Request, ResetOptions, RowReset, Snapshot};
pub use parameter::{Parameter, Standard, Tuned, Value, wrong};
pub use plain_loop::PlainLoops;
pub use recipe::{AnyRecipe, Recipe, Settings};
pub use shard::NativeShard;
pub use space::{Bounds, Space, Spaces};
pub use stream::{Seed, Stream};
pub use view::{Flat, View, Wanted};
