//! A plugin that breaks its contract, each time in one way, without touching memory that is not its
//! own or the host's.
//!
//! # Invariants
//!
//! 1. The host calls these functions as `cartwheel_abi` describes. A fault that writes outside of an
//!    array is used only where the host runs batches in guarded copies.
#![expect(unsafe_code, reason = "a plugin written by hand, see the invariants")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::slice::from_raw_parts;

use cartwheel_abi::{
    BOX, Batch, DICT, DISCRETE, Description, Env, FAILED, FLOAT32, Frame, INT64, LEAVE, MAJOR,
    MINOR, MULTI_DISCRETE, OK, PANICKED, Plugin, Sink, Space, TUPLE,
};

/// A static table.
#[repr(transparent)]
pub(crate) struct Table<T>(pub(crate) T);

// SAFETY: nothing writes to a table.
unsafe impl<T> Sync for Table<T> {}

static LOW: i64 = 0;
static HIGH: i64 = 99;

const fn leaf(kind: u32, dtype: u32, bounds: usize) -> Space {
    Space {
        kind,
        dtype,
        key: null(),
        children: 0,
        dimensions: 0,
        shape: null(),
        bounds,
        low: (&raw const LOW).cast(),
        high: (&raw const HIGH).cast(),
    }
}

static NUMBER: Table<[Space; 1]> = Table([leaf(DISCRETE, INT64, 1)]);
static LONE_TUPLE: Table<[Space; 1]> = Table([Space { children: 3, ..leaf(TUPLE, INT64, 0) }]);
static KEYLESS: Table<[Space; 2]> =
    Table([Space { children: 1, ..leaf(DICT, INT64, 0) }, leaf(DISCRETE, INT64, 1)]);
static FLOATING: Table<[Space; 1]> = Table([leaf(DISCRETE, FLOAT32, 1)]);
static UNKNOWN: Table<[Space; 1]> = Table([leaf(77, INT64, 1)]);
static UNTYPED: Table<[Space; 1]> = Table([leaf(BOX, 9, 1)]);
static TOO_LONG: Table<[usize; 2]> = Table([usize::MAX, 3]);
static ENDLESS: Table<[Space; 1]> =
    Table([Space { dimensions: 2, shape: &raw const TOO_LONG.0[0], ..leaf(BOX, INT64, 1) }]);
static LONG: Table<[usize; 1]> = Table([1 << 40]);
static ROW: Table<[Space; 1]> =
    Table([Space { dimensions: 1, shape: &raw const LONG.0[0], ..leaf(DISCRETE, INT64, 1) }]);
static CROWD: Table<[Space; 1]> =
    Table([Space { dimensions: 1, shape: &raw const LONG.0[0], ..leaf(MULTI_DISCRETE, INT64, 1) }]);
static EMPTY: Table<[Space; 1]> = Table([leaf(TUPLE, INT64, 0)]);
static UNBOUND: Table<[Space; 1]> = Table([leaf(BOX, INT64, 5)]);
static TWICE: Table<[Space; 2]> = Table([leaf(DISCRETE, INT64, 1), leaf(DISCRETE, INT64, 1)]);

/// The faults, by the option `fault`.
const FAULTS: &[&str] = &[
    "none",
    "next",
    "status",
    "row",
    "order",
    "kind",
    "number",
    "length",
    "sink",
    "failed",
    "panicked",
    "outside",
    "leave",
    "lone tuple",
    "keyless",
    "floating",
    "unknown",
    "untyped",
    "endless",
    "long",
    "crowded",
    "actionless",
    "unbound",
    "twice",
    "floats",
    "nameless agents",
    "named",
    "no value",
    "two values",
];

/// A render mode and a parameter, of the fault that is none: `named`.
static MODES: Table<[*const c_char; 1]> = Table([text(c"ansi")]);
static PARAMETERS: Table<[*const c_char; 1]> = Table([text(c"size")]);

struct HostileKind {
    fault: &'static str,
}

unsafe extern "C" fn kind_new(options: *const u8, len: usize, error: *mut Sink) -> *mut c_void {
    // SAFETY: the host's text (invariant 1).
    let options = unsafe { from_raw_parts(options, len) };
    let options = std::str::from_utf8(options).expect("the host writes UTF-8");
    let fault = FAULTS.iter().find(|fault| options.contains(&format!("\"fault\":\"{fault}\"")));
    let Some(fault) = fault else {
        // SAFETY: the host's sink (invariant 1).
        unsafe { append(error, format!("no such fault in {options}").as_bytes()) };
        return null_mut();
    };
    Box::into_raw(Box::new(HostileKind { fault })).cast()
}

unsafe extern "C" fn kind_free(kind: *mut c_void) {
    // SAFETY: made by `kind_new` (invariant 1).
    drop(unsafe { Box::from_raw(kind.cast::<HostileKind>()) });
}

unsafe extern "C" fn kind_describe(kind: *const c_void, description: *mut Description) {
    // SAFETY: made by `kind_new` (invariant 1).
    let fault = unsafe { &*kind.cast::<HostileKind>() }.fault;
    // SAFETY: the host's description (invariant 1).
    let description = unsafe { &mut *description };
    let nodes: &'static [Space] = match fault {
        "lone tuple" => &LONE_TUPLE.0,
        "keyless" => &KEYLESS.0,
        "floating" => &FLOATING.0,
        "unknown" => &UNKNOWN.0,
        "untyped" => &UNTYPED.0,
        "endless" => &ENDLESS.0,
        "long" => &ROW.0,
        "crowded" => &CROWD.0,
        "unbound" => &UNBOUND.0,
        "twice" => &TWICE.0,
        _ => &NUMBER.0,
    };
    (description.observation, description.observation_nodes) = (nodes.as_ptr(), nodes.len());
    let actions: &'static [Space] = if fault == "actionless" { &EMPTY.0 } else { &NUMBER.0 };
    (description.action, description.action_nodes) = (actions.as_ptr(), actions.len());
    if fault == "nameless agents" {
        description.num_agents = 2;
    }
    if matches!(fault, "named" | "no value" | "two values") {
        (description.render_modes, description.num_render_modes) = (MODES.0.as_ptr(), 1);
        (description.parameters, description.num_parameters) = (PARAMETERS.0.as_ptr(), 1);
    }
    if fault == "floats" {
        description.action_floats = [1].as_ptr();
    }
}

unsafe extern "C" fn rows_new(kind: *const c_void, _: usize, _: *mut Sink) -> *mut c_void {
    kind.cast_mut() // rows have no state
}

unsafe extern "C" fn rows_free(_: *mut c_void) {}

/// # Safety
///
/// The host's sink (invariant 1).
unsafe fn append(sink: *mut Sink, bytes: &[u8]) {
    // SAFETY: as the caller promises.
    let own = unsafe { &mut *sink };
    if own.capacity - own.len < bytes.len() {
        // SAFETY: the host's own function.
        unsafe { (own.grow)(sink, bytes.len()) };
    }
    // SAFETY: as the caller promises.
    let own = unsafe { &mut *sink };
    // SAFETY: there is room for the bytes.
    let end = unsafe { own.bytes.add(own.len) };
    // SAFETY: there is room for the bytes, which do not overlap the sink.
    unsafe { end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    own.len += bytes.len();
}

fn record(kind: u8, row: u32, length: u32) -> Vec<u8> {
    let mut record = vec![kind];
    record.extend(row.to_le_bytes());
    record.extend([0; 2]);
    record.extend(length.to_le_bytes());
    record
}

/// Every row shows its number. The fault happens in a step, when there are at least two rows.
unsafe extern "C" fn run(rows: *mut c_void, batch: *mut Batch) -> u32 {
    // SAFETY: made by `rows_new` (invariant 1).
    let fault = unsafe { &*rows.cast::<HostileKind>() }.fault;
    // SAFETY: the host's batch (invariant 1).
    let batch = unsafe { &mut *batch };
    // SAFETY: one command for each row.
    let commands = unsafe { from_raw_parts(batch.commands, batch.rows) };
    // SAFETY: one leaf.
    let observations = unsafe { *batch.observations }.cast::<i64>();
    for row in (batch.next..batch.rows).filter(|&row| commands[row] != LEAVE) {
        let number = i64::try_from(batch.first + row).expect("few rows");
        // SAFETY: a row of the array.
        unsafe { observations.wrapping_add(row).write(number) };
        // SAFETY: one reward for each row.
        unsafe { batch.rewards.wrapping_add(row).write(1.0) };
        for flags in [batch.terminations, batch.truncations] {
            // SAFETY: one flag for each row.
            unsafe { flags.wrapping_add(row).write(0) };
        }
    }
    let has_fault = fault == "leave" || commands.contains(&cartwheel_abi::STEP);
    let is_due = batch.rows > 1 && has_fault;
    let start = batch.next;
    batch.next = batch.rows;
    if !is_due {
        return OK;
    }
    let row = batch.info_row;
    // SAFETY: the host's sinks, in the branches below.
    let infos = |bytes: &[u8]| unsafe { append(batch.infos, bytes) };
    match fault {
        "next" => batch.next += 1,
        "status" => return 77,
        "row" => infos(&record(0, row + 1000, 0)),
        "order" => infos(&[record(0, row + 1, 0), record(0, row, 0)].concat()),
        "kind" => infos(&record(2, row, 0)),
        "number" => infos(&[record(1, row, 1), vec![0]].concat()),
        "length" => infos(&record(0, row, 1000)),
        // SAFETY: the host's sink.
        "sink" => unsafe { (*batch.infos).len = usize::MAX },
        "failed" | "panicked" if start == 0 => {
            batch.next = 1;
            // SAFETY: the host's sink.
            unsafe { append(batch.error, b"row one is \xff") };
            return if fault == "failed" { FAILED } else { PANICKED };
        }
        // SAFETY: a guarded copy (invariant 1).
        "outside" => unsafe { observations.wrapping_add(batch.rows).write(7) },
        "leave" => {
            let left = commands.iter().position(|&command| command == LEAVE);
            // SAFETY: a row of the array.
            let _ = left.map(|row| unsafe { observations.wrapping_add(row).write(7) });
        }
        _ => {}
    }
    OK
}

/// Trusts the host to know the number of render modes: another one ends the process.
pub(crate) unsafe extern "C" fn row_render(
    _: *mut c_void,
    _: usize,
    mode: usize,
    frame: *mut Frame,
    _: *mut Sink,
) -> u32 {
    // SAFETY: the host's frame (invariant 1).
    let bytes = unsafe { (*frame).bytes };
    // SAFETY: the host's sink (invariant 1).
    unsafe { append(bytes, ["drawn"][mode].as_bytes()) };
    OK
}

/// Trusts the host to know the number of parameters: another one ends the process. Each is an integer.
pub(crate) unsafe extern "C" fn parameter_get(
    rows: *mut c_void,
    _: usize,
    parameter: usize,
    value: *mut Sink,
    _: *mut Sink,
) -> u32 {
    // SAFETY: made by `rows_new` (invariant 1).
    let fault = unsafe { &*rows.cast::<HostileKind>() }.fault;
    let seven = [[3, 7, 0, 0, 0, 0, 0, 0, 0]][parameter];
    let bytes = match fault {
        "no value" => Vec::new(),
        "two values" => [seven, seven].concat(),
        _ => seven.to_vec(),
    };
    // SAFETY: the host's sink (invariant 1).
    unsafe { append(value, &bytes) };
    OK
}

const fn text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}

/// The table of the environment.
pub(crate) const fn env(id: &'static CStr) -> Env {
    Env {
        struct_size: size_of::<Env>(),
        id: text(id),
        default_options: text(c"{\"fault\": \"none\"}"),
        max_episode_steps: 0,
        block: 1,
        reward_threshold: f64::NAN,
        option_names: None,
        kind_new: Some(kind_new),
        kind_free: Some(kind_free),
        kind_describe: Some(kind_describe),
        rows_new: Some(rows_new),
        rows_free: Some(rows_free),
        run: Some(run),
        reset_options_new: None,
        reset_options_free: None,
        row_replace: None,
        parameter_get: None,
        parameter_set: None,
        row_save: None,
        row_load: None,
        row_render: None,
        reset_option_names: None,
    }
}

/// The table of a plugin with these environments.
pub(crate) const fn plugin(envs: &'static [Env]) -> Plugin {
    Plugin {
        struct_size: size_of::<Plugin>(),
        major: MAJOR,
        minor: MINOR,
        name: text(c"hostile"),
        version: text(c"1.2.3"),
        needs_minor: 0,
        #[expect(clippy::cast_possible_truncation, reason = "the size of a small struct")]
        env_size: size_of::<Env>() as u32,
        envs: envs.as_ptr(),
        num_envs: envs.len(),
    }
}
