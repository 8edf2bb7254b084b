//! The tables between cartwheel, the *host*, and a library with environments, the *plugin*.
//!
//! A plugin is a static [`Plugin`]: a Python module offers it as the attribute `__cartwheel__`, a
//! `PyCapsule` named `cartwheel.plugin`; another library as the symbol `cartwheel_plugin`. The host
//! makes a *kind* (an environment with its options), *rows* of it, and calls [`Env::run`] once for
//! each run of rows and each task. The host owns everything but the environments' state: it plans
//! which row is stepped or reset, counts steps, seeds random streams and keeps infos.
//!
//! # Invariants
//!
//! 1. **Versions.** [`MAJOR`] must be equal. [`Plugin::needs_minor`] is the oldest minor version of
//!    the host that the plugin can do with. Fields are appended and never changed. Every table
//!    begins with its size: a field exists only if the size covers it, and an optional function may
//!    be null. The first five fields of [`Plugin`] stay in every major version.
//! 2. **Ownership.** Everything in a [`Batch`] belongs to the host and is valid during the call.
//!    What a plugin makes, the plugin frees, when the host calls the `…_free` function. Tables are
//!    static, and libraries are never unloaded.
//! 3. **Unwinding** never crosses the FFI boundary. A plugin catches its panics or exceptions, and returns
//!    [`PANICKED`].
//! 4. **Threads.** One `rows` is used by one thread at a time, by any thread; a kind by several at
//!    once. A plugin does not call Python, and leaves floating-point modes as it found them.
//! 5. **Fork.** A child calls nothing that was made before the fork, not even a `…_free` function.
//! 6. **Text** is UTF-8. Static text ends with a zero byte; other text has a length.
//!
//! `include/cartwheel.h` has the same tables for C and C++; a test compares it with this file.
#![no_std]
#![expect(unsafe_code, reason = "tables hold pointers to static text, see the invariants")]

use core::ffi::{c_char, c_void};

/// Changes when a table changes in a way that older programs cannot read.
pub const MAJOR: u32 = 2;

/// Counts the fields, commands and codes that were appended.
pub const MINOR: u32 = 3;

/// The call succeeded.
pub const OK: u32 = 0;
/// The call failed; the error sink says why.
pub const FAILED: u32 = 1;
/// The author's code panicked; the error sink has the message.
pub const PANICKED: u32 = 2;

/// Step the row: write reward, flags, observation and info.
pub const STEP: u8 = 0;
/// Reset the row: write observation and info, reward 0 and cleared flags.
pub const RESET: u8 = 1;
/// Leave the row alone, and write nothing.
pub const LEAVE: u8 = 2;
/// Write the observation of the present state, and nothing else.
pub const SHOW: u8 = 3;

/// `Box`: an array between bounds.
pub const BOX: u32 = 0;
/// `Discrete`: one `int64` of `low[0] ..= high[0]`.
pub const DISCRETE: u32 = 1;
/// `MultiDiscrete`: an array of `int64`, each of `low ..= high`.
pub const MULTI_DISCRETE: u32 = 2;
/// `MultiBinary`: an array of `int8`, zeros and ones.
pub const MULTI_BINARY: u32 = 3;
/// `Tuple`: the next [`Space::children`] spaces.
pub const TUPLE: u32 = 4;
/// `Dict`: the next [`Space::children`] spaces, sorted by [`Space::key`].
pub const DICT: u32 = 5;
/// `Text`, only in observations. A row is an array of `uint8`: the number of bytes as a native
/// `uint32`, then that many bytes of UTF-8, then zeros. Since minor version 1.
pub const TEXT: u32 = 6;

/// `bool`, one byte: 0 or 1.
pub const BOOL: u32 = 0;
/// `int8`.
pub const INT8: u32 = 1;
/// `int16`.
pub const INT16: u32 = 2;
/// `int32`.
pub const INT32: u32 = 3;
/// `int64`.
pub const INT64: u32 = 4;
/// `uint8`.
pub const UINT8: u32 = 5;
/// `uint16`.
pub const UINT16: u32 = 6;
/// `uint32`.
pub const UINT32: u32 = 7;
/// `uint64`.
pub const UINT64: u32 = 8;
/// `float32`. The number 9 is `float16`, which environments do not use.
pub const FLOAT32: u32 = 10;
/// `float64`.
pub const FLOAT64: u32 = 11;

/// Bytes that a plugin writes and the host owns: the info stream, the text of an error, a saved
/// state.
///
/// A plugin appends at `bytes + len` and adds to `len`. Where `len` would exceed `capacity`, it
/// first calls `grow`, which may move the bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Sink {
    /// `sizeof` of this struct in the host's version.
    pub struct_size: usize,
    /// The first byte.
    pub bytes: *mut u8,
    /// Bytes that are written.
    pub len: usize,
    /// Bytes that have room.
    pub capacity: usize,
    /// Makes room for `additional` further bytes. Never fails: a host without memory ends.
    pub grow: unsafe extern "C" fn(sink: *mut Sink, additional: usize),
}

/// A random stream: the state of NumPy's `PCG64`. The host seeds it; a plugin that draws from it
/// leaves the advanced state.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomStream {
    /// The state: low and high 64 bits.
    pub state: [u64; 2],
    /// The increment: low and high 64 bits.
    pub increment: [u64; 2],
    /// The kept half of a 64-bit draw, see `has_half`.
    pub half: u32,
    /// 1 if `half` is the next 32-bit draw, else 0.
    pub has_half: u32,
}

/// One node of a space, in preorder: a `Tuple` or `Dict` comes before the spaces in it.
///
/// Every node but a `Tuple` or `Dict` is a *leaf*: an array of `dtype` and `shape` for each row.
#[repr(C)]
#[derive(Debug)]
pub struct Space {
    /// [`BOX`] to [`TEXT`].
    pub kind: u32,
    /// [`BOOL`] to [`FLOAT64`]; `INT64` for `DISCRETE` and `MULTI_DISCRETE`, `INT8` for
    /// `MULTI_BINARY`, `UINT8` for `TEXT`.
    pub dtype: u32,
    /// The key in the `Dict` that the node is directly in, else null. Ends with a zero byte.
    pub key: *const c_char,
    /// Number of spaces directly in a `TUPLE` or `DICT`, else 0.
    pub children: usize,
    /// Number of dimensions of a leaf; 0 for a number.
    pub dimensions: usize,
    /// The length of each dimension.
    pub shape: *const usize,
    /// Number of bounds: 1 for all elements together, or one for each element, row-major; 0 for
    /// `MULTI_BINARY`; for `TEXT` the number of bytes of the charset.
    pub bounds: usize,
    /// Smallest values, as elements of `dtype`; for `TEXT` the charset in UTF-8.
    pub low: *const c_void,
    /// Largest values, as elements of `dtype`; for `TEXT` two `size_t`: the fewest and the most
    /// characters.
    pub high: *const c_void,
}

/// The description of a kind. Valid until the kind is freed.
#[repr(C)]
#[derive(Debug)]
pub struct Description {
    /// `sizeof` of this struct in the host's version; the host sets it. A plugin that can do with an
    /// older host than one with a field compares before it sets that field.
    pub struct_size: usize,
    /// The nodes of the observation space.
    pub observation: *const Space,
    /// Number of these nodes.
    pub observation_nodes: usize,
    /// The nodes of the action space.
    pub action: *const Space,
    /// Number of these nodes.
    pub action_nodes: usize,
    /// The names of the parameters, each ended by a zero byte. A parameter's number is its place.
    pub parameters: *const *const c_char,
    /// Number of parameters.
    pub num_parameters: usize,
    /// The render modes, as Gymnasium names them, each ended by a zero byte: `rgb_array`, `ansi`.
    /// A mode's number is its place.
    pub render_modes: *const *const c_char,
    /// Number of render modes.
    pub num_render_modes: usize,
    /// Since minor version 1, optional. One byte for each leaf of the action space: 1 where the
    /// plugin takes [`FLOAT32`] and [`FLOAT64`] alike, which the space of such a leaf must have.
    /// [`Batch::action_dtypes`] says which of the two a batch has: the one that the caller passed.
    pub action_floats: *const u8,
    /// Since minor version 2, optional. The names of the agents of an environment of several, each
    /// ended by a zero byte, in the order of their dimension. The observation space of such an
    /// environment is a `DICT` with `agents`, the agents' observations, whose leaves have the agents
    /// as their first dimension; `flags`, a `MULTI_BINARY` of the shape `(5, num_agents)`; and
    /// `rewards`, a `BOX` of `FLOAT64` and the shape `(num_agents,)`. It may have other keys. The
    /// leaves of the action space have the agents as their first dimension. The action space, and
    /// `agents`, may be a `DICT` with their names as keys instead.
    ///
    /// The rows of `flags` are, for each agent: terminated by the step; truncated by it; observed, so
    /// that `agents` has an observation of it; stepped; alive after the step. A flag that is not 0 is
    /// true. After a reset no agent was stepped, and rewards are zeros. Agents that are alive when the
    /// row is terminated or truncated end with it.
    pub agents: *const *const c_char,
    /// Number of agents; 0 for an environment of one.
    pub num_agents: usize,
    /// Since minor version 3, optional. Frames per second of videos and windows; 0 for the host's
    /// choice.
    pub render_fps: usize,
}

/// One task on consecutive rows.
///
/// Arrays have one entry for each row of the batch, `0 .. rows`. Leaves are in the order of their
/// spaces; each is an array `[rows, *shape]`, row-major, aligned to its elements.
#[repr(C)]
#[derive(Debug)]
pub struct Batch {
    /// `sizeof` of this struct in the host's version.
    pub struct_size: usize,
    /// The first of the rows, counted from the first row of the `rows` object.
    pub first: usize,
    /// Number of rows.
    pub rows: usize,
    /// In: the row to begin with. Out: `rows` after [`OK`], else the row that failed or panicked.
    /// A call that continues one in which a row failed begins behind that row and has as many
    /// `rows`, with only resets and shows of single rows in between. So a plugin that steps rows in
    /// blocks may keep the rest of a block for it. The rows of one step may be divided among several
    /// calls, so the first call of a step need not begin with 0.
    pub next: usize,
    /// The command of each row: [`STEP`], [`RESET`], [`LEAVE`], [`SHOW`].
    pub commands: *const u8,
    /// One pointer for each leaf of the action space; only rows that step have actions. Null where
    /// no row steps.
    pub actions: *const *const c_void,
    /// One pointer for each leaf of the observation space. A row that shows an observation writes
    /// every byte of it.
    pub observations: *const *mut c_void,
    /// Rewards.
    pub rewards: *mut f64,
    /// 1 where the step ended the episode, else 0.
    pub terminations: *mut u8,
    /// 1 where the step cut the episode short, else 0. The host adds its time limit.
    pub truncations: *mut u8,
    /// Random streams.
    pub streams: *mut RandomStream,
    /// Options for the rows that reset, made by [`Env::reset_options_new`]; null for the defaults.
    pub reset_options: *const c_void,
    /// The number of the batch's first row in the records of infos.
    pub info_row: u32,
    /// Infos: one record for each row that stepped or reset and has an info, in the order of rows.
    /// The format is described in `cartwheel_core::info`; kinds 0 and 1, tags 0 to 10.
    pub infos: *mut Sink,
    /// The reason of a failure, as text.
    pub error: *mut Sink,
    /// The dtype of each leaf of the actions: that of its space, except where
    /// [`Description::action_floats`] allows another one. Null where no row steps.
    pub action_dtypes: *const u32,
}

/// The properties of a frame.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// `sizeof` of this struct in the host's version.
    pub struct_size: usize,
    /// Out, for `rgb_array`: rows of pixels.
    pub height: usize,
    /// Out, for `rgb_array`: pixels in a row.
    pub width: usize,
    /// `rgb_array`: `height * width * 3` bytes, row-major. `ansi`: text.
    pub bytes: *mut Sink,
}

/// An environment that a plugin offers.
///
/// A function with an error sink returns null or [`FAILED`] or [`PANICKED`] after it wrote the
/// reason there. A function that is marked as optional may be null.
#[repr(C)]
#[derive(Debug)]
pub struct Env {
    /// `sizeof` of this struct in the plugin's version.
    pub struct_size: usize,
    /// The id, as in Gymnasium's registry: `my_game/Maze-v0`. Ends with a zero byte.
    pub id: *const c_char,
    /// Options that the id passes where the caller passes none: a JSON object. Ends with a zero
    /// byte.
    pub default_options: *const c_char,
    /// Steps after which the host truncates an episode; 0 for no limit.
    pub max_episode_steps: u32,
    /// Rows that `run` steps together; 1 where it steps each by itself. The host deals rows in
    /// multiples of it where it can.
    pub block: u32,
    /// The return at which the task counts as solved; NaN for none.
    pub reward_threshold: f64,

    /// Optional. Writes the names of the options, each followed by a newline. An empty name says
    /// that there are others, which are not listed. A name may be followed by a tab, its default as
    /// JSON or nothing, another tab, and a text in one line: documentation for listings.
    pub option_names: Option<unsafe extern "C" fn(names: *mut Sink)>,
    /// Makes a kind from options: a JSON object of `len` bytes, which holds the default options
    /// too.
    pub kind_new: Option<
        unsafe extern "C" fn(options: *const u8, len: usize, error: *mut Sink) -> *mut c_void,
    >,
    /// Frees a kind; its rows are freed already.
    pub kind_free: Option<unsafe extern "C" fn(kind: *mut c_void)>,
    /// Fills a description of the kind.
    pub kind_describe:
        Option<unsafe extern "C" fn(kind: *const c_void, description: *mut Description)>,

    /// Makes `count` environments, not yet reset.
    pub rows_new: Option<
        unsafe extern "C" fn(kind: *const c_void, count: usize, error: *mut Sink) -> *mut c_void,
    >,
    /// Frees environments.
    pub rows_free: Option<unsafe extern "C" fn(rows: *mut c_void)>,
    /// Steps, resets and shows rows: [`OK`], [`FAILED`] or [`PANICKED`].
    pub run: Option<unsafe extern "C" fn(rows: *mut c_void, batch: *mut Batch) -> u32>,

    /// Optional. Parses options of a reset: a JSON object of `len` bytes. Without it, a reset has
    /// no options.
    pub reset_options_new: Option<
        unsafe extern "C" fn(
            kind: *const c_void,
            options: *const u8,
            len: usize,
            error: *mut Sink,
        ) -> *mut c_void,
    >,
    /// Frees options of a reset. Not null where `reset_options_new` is not.
    pub reset_options_free: Option<unsafe extern "C" fn(options: *mut c_void)>,
    /// Optional. Replaces the environment of a row by a new one, not yet reset.
    pub row_replace:
        Option<unsafe extern "C" fn(rows: *mut c_void, row: usize, error: *mut Sink) -> u32>,
    /// Optional. Writes a parameter of a row: one value of the info format.
    pub parameter_get: Option<
        unsafe extern "C" fn(
            rows: *mut c_void,
            row: usize,
            parameter: usize,
            value: *mut Sink,
            error: *mut Sink,
        ) -> u32,
    >,
    /// Optional. Sets a parameter of a row to one value of the info format, `len` bytes. After a
    /// failure the parameter has its old value.
    pub parameter_set: Option<
        unsafe extern "C" fn(
            rows: *mut c_void,
            row: usize,
            parameter: usize,
            value: *const u8,
            len: usize,
            error: *mut Sink,
        ) -> u32,
    >,
    /// Optional. Writes the state of a row, such that `row_load` continues as the row does.
    pub row_save: Option<
        unsafe extern "C" fn(
            rows: *mut c_void,
            row: usize,
            state: *mut Sink,
            error: *mut Sink,
        ) -> u32,
    >,
    /// Optional. Continues a row from a state that `row_save` of the same kind wrote, in this version
    /// of the plugin or in one that Semantic Versioning calls compatible with it: the host refuses
    /// the states of others. After a failure the row has its old state.
    pub row_load: Option<
        unsafe extern "C" fn(
            rows: *mut c_void,
            row: usize,
            state: *const u8,
            len: usize,
            error: *mut Sink,
        ) -> u32,
    >,
    /// Optional. Draws a row in the render mode of this number.
    pub row_render: Option<
        unsafe extern "C" fn(
            rows: *mut c_void,
            row: usize,
            mode: usize,
            frame: *mut Frame,
            error: *mut Sink,
        ) -> u32,
    >,
    /// Optional. Writes the names of the options of a reset, as `option_names`.
    pub reset_option_names: Option<unsafe extern "C" fn(names: *mut Sink)>,
}

// SAFETY: nothing writes to an `Env`, and its pointers point at static text (invariant 2).
unsafe impl Sync for Env {}

/// A library with environments.
#[repr(C)]
#[derive(Debug)]
pub struct Plugin {
    /// `sizeof` of this struct in the plugin's version.
    pub struct_size: usize,
    /// [`MAJOR`] of the plugin's version.
    pub major: u32,
    /// [`MINOR`] of the plugin's version.
    pub minor: u32,
    /// The plugin's name, ended by a zero byte.
    pub name: *const c_char,
    /// The plugin's version, ended by a zero byte.
    pub version: *const c_char,
    /// The oldest minor version of a host that the plugin can do with.
    pub needs_minor: u32,
    /// `sizeof` of [`Env`] in the plugin's version: the distance of one table from the next.
    pub env_size: u32,
    /// The environments.
    pub envs: *const Env,
    /// Number of environments.
    pub num_envs: usize,
}

// SAFETY: nothing writes to a `Plugin` (invariant 2).
unsafe impl Sync for Plugin {}

/// The name of the capsule that a Python module offers.
pub const CAPSULE: &core::ffi::CStr = c"cartwheel.plugin";
