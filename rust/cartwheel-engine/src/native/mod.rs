//! Native environments as the shards of a pool.
//!
//! ```text
//! EnvKind ─▶ NativeShard, one a worker ─▶ pool
//!           │ Autoreset plans commands; EnvRows carries them out in one call; Autoreset settles
//!           └ Mailbox: resets, parameters, states, faults
//! ```
//!
//! Rows that are sent go the same way, but into memory of the shard, before they get their places.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Stream`], [`Seed`] | the random stream of a row |
//! | [`RowState`] | the saved state of a row |
//! | [`ResetCache`], [`Draw`] | initial states that resets load, and which ones |
//! | [`ShardSettings`] | settings that all shards of a pool share, besides their kind |
//! | [`NativeShard`] | the environments of one worker |
//! | [`ExternalRewards`], [`ExternalInfo`] | rewards, flags and infos of rows that the owner computes |
//! | [`BegunRow`], [`Beginning`] | a row whose reset the owner completes, and how it goes on |
//! | [`Mailbox`] | what owner and shard pass to each other besides the batch |

mod cache;
mod chunk_size;
mod infos;
mod mailbox;
mod native_rows;
mod prepared;
mod requests;
mod settings;
mod shard;
mod shown;
mod state;
mod stream;

pub use cache::{Draw, ResetCache};
pub use mailbox::{
    Answer, Beginning, BegunRow, ExternalInfo, ExternalRewards, Fault, Mailbox, Request,
    RowOptions, RowReset, TerminalState,
};
pub use settings::ShardSettings;
pub use shard::NativeShard;
pub use state::RowState;
pub use stream::{Seed, Stream};
