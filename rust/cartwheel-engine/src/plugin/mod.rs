//! The host's side of plugins: tables from other libraries, and the environments that they make.
//!
//! ```text
//! table (static, the plugin's) ─check─▶ EnvTable ─registry─▶ by id
//! EnvTable + options (JSON) ─▶ EnvKind: spaces, parameters, render modes ─▶ EnvRows, one a shard
//! EnvRows ─run─▶ one call for all rows of a task, checked when it returns
//! ```
//!
//! | noun | what it is |
//! |---|---|
//! | [`EnvTable`] | the functions of one kind of environment, read and checked |
//! | [`register`], [`find`] | the tables of this process, by id |
//! | [`EnvKind`] | a table with options: what is made once for a pool |
//! | [`ResetOptions`] | options of a reset, as the plugin parsed them |
//! | [`RenderFrame`] | a drawing of a row |
//!
//! # Invariants
//!
//! The contract with plugins is [`cartwheel_abi`]; its invariants are cited as "abi 1" and so on. A
//! plugin that breaks it can do anything, as every library in a process can. The invariants here
//! say what the host does.
//!
//! 1. **Tables.** Only bytes that a table's size covers are read, at registration, into a copy whose
//!    other bytes are zeros: absent functions are null. The code that registers a table promises that it
//!    and its texts are static, and that its functions keep the contract.
//! 2. **Handles.** A kind, its rows and its options of a reset are made, used and freed by functions
//!    of one table. Rows and options keep their kind alive. Each is freed once, and not used later.
//! 3. **Threads.** Rows are called by the code that borrows them mutably; a kind is called by several
//!    threads (abi 4).
//! 4. **Forks.** Nothing is called in a process other than the one that made the handle (abi 5).
//! 5. **Arrays.** The arrays of a batch have one entry for each of its rows, and are borrowed for the
//!    call (abi 2). Bytes of a sink up to its capacity are initialized, so that a wrong length
//!    shows old bytes and not uninitialized ones.
//! 6. **Answers are checked.** `next`, statuses, lengths of sinks and records of infos are checked
//!    before anything relies on them.

mod env_kind;
mod env_rows;
mod guards;
mod handle;
mod records;
mod registry;
mod reset_options;
mod sink;
mod spaces;
mod table;
mod text;

pub use env_kind::EnvKind;
pub use env_rows::RenderFrame;
pub(crate) use env_rows::{BatchCall, Ended, EnvRows};
pub(crate) use records::entries_of;
pub use registry::{BUILT_IN, all, find, register};
pub use reset_options::ResetOptions;
pub(crate) use sink::Bytes;
pub use table::{EnvTable, ListedOption};
