//! Native environments: from an [`crate::env::Env`] to the rows of a pool.
//!
//! ```text
//! options (JSON) ─▶ Recipe<E> ─▶ NativeShard<E>, one a worker ─▶ pool
//!                                  │ NativeRows carry out commands of Autoreset: View (actions in, observations out)
//!                                  └ Mailbox: resets, parameters, snapshots, faults
//! ```
//!
//! | noun | what it is |
//! |---|---|
//! | [`Stream`], [`Seed`] | the random stream of a row |
//! | [`Recipe`], [`AnyRecipe`] | a kind of environment with its options |
//! | [`ShardSettings`] | settings that all shards of a pool share, besides the recipe |
//! | [`NativeShard`] | the environments of one worker |
//! | [`Mailbox`] | what owner and shard pass to each other besides the batch |

mod mailbox;
mod pace;
mod recipe;
mod replacements;
mod requests;
mod reset;
mod rows;
mod settings;
mod shard;
mod snapshot;
mod step;
mod stream;

pub use mailbox::{Answer, Fault, Mailbox, Request, ResetOptions, RowReset, Snapshot};
pub use recipe::{AnyRecipe, Recipe};
pub use settings::ShardSettings;
pub use shard::NativeShard;
pub use stream::{Seed, Stream};
