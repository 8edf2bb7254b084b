//! Python objects that native code uses by name: strings, and functions and classes of modules.
//!
//! All of it is looked up while `cartwheel` is imported: `first_uses.rs` says why.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

const NAMES: [&str; 108] = [
    "C",
    "TimeLimit.truncated",
    "__round__",
    "_as_arrays",
    "_as_finals",
    "_checked",
    "_env_error",
    "_final_frame",
    "_final_info",
    "_final_obs",
    "_final_observation",
    "_finals",
    "_infos_lost",
    "_lose_at",
    "_observe",
    "_pass_on",
    "_plan",
    "_shown_infos",
    "_taken",
    "_transformed",
    "_worker_restarted",
    "add_info",
    "answer",
    "answer_failed",
    "asked_again",
    "batch_opaque",
    "casting",
    "clear",
    "close",
    "copy",
    "discard",
    "draw",
    "draw_terminal",
    "drawn",
    "dtype",
    "elapsed_step",
    "empty",
    "end_copy",
    "env",
    "env_id",
    "env_index",
    "episode",
    "episode_len",
    "exceptions_by_row",
    "fail_at_end",
    "fail_once",
    "final_frame",
    "final_info",
    "final_obs",
    "final_observation",
    "first_row",
    "get_nowait",
    "hang_up",
    "infos",
    "into",
    "is_neg",
    "item",
    "items",
    "kinds",
    "l",
    "object",
    "observations",
    "order",
    "outbox",
    "pack_actions",
    "pack_answer",
    "pack_faults",
    "pack_next_resets",
    "pack_rest",
    "pack_sent_actions",
    "places",
    "players",
    "post",
    "put",
    "r",
    "raise_faults",
    "ready",
    "reap",
    "receive_actions",
    "receive_answers",
    "receive_next_resets",
    "receive_reset",
    "receive_rest",
    "replace",
    "reset",
    "restart",
    "restore",
    "retire",
    "return",
    "reward",
    "rewards",
    "row_resets",
    "same_kind",
    "save",
    "seed",
    "single_observation_space",
    "step",
    "still_waiting",
    "success_at_end",
    "success_once",
    "t",
    "take_action",
    "take_next_reset",
    "take_reset",
    "terminal_observation",
    "terminations",
    "tolist",
    "truncations",
];

/// Modules and what is used of them.
const OBJECTS: [(&str, &str); 16] = [
    ("cartwheel.errors", "BrokenPoolError"),
    ("cartwheel.errors", "EnvFailedError"),
    ("cartwheel.errors", "EnvPanicError"),
    ("cartwheel.errors", "EpisodeOverError"),
    ("cartwheel.errors", "ForkedProcessError"),
    ("cartwheel.errors", "PluginError"),
    ("cartwheel.errors", "add_note"),
    ("copy", "deepcopy"),
    ("gymnasium.error", "AlreadyPendingCallError"),
    ("gymnasium.error", "ClosedEnvironmentError"),
    ("gymnasium.error", "NoAsyncCallError"),
    ("gymnasium.error", "ResetNeeded"),
    ("multiprocessing", "TimeoutError"),
    ("numpy", "asarray"),
    ("numpy", "empty"),
    ("pickle", "loads"),
];

#[derive(Debug)]
struct Known {
    names: [Py<PyString>; NAMES.len()],
    objects: [Py<PyAny>; OBJECTS.len()],
}

static KNOWN: PyOnceLock<Known> = PyOnceLock::new();

fn known(py: Python<'_>) -> &Known {
    KNOWN.get(py).expect("`cartwheel` looks it up when it is imported")
}

pub(crate) fn look_up(py: Python<'_>) -> PyResult<()> {
    let objects = OBJECTS.map(|(module, name)| Ok(py.import(module)?.getattr(name)?.unbind()));
    let objects = objects.into_iter().collect::<PyResult<Vec<_>>>()?;
    KNOWN.get_or_init(py, || Known {
        names: NAMES.map(|name| PyString::intern(py, name).unbind()),
        objects: objects.try_into().expect("one for each"),
    });
    Ok(())
}

/// The place of a string in [`NAMES`].
pub(crate) const fn name(name: &str) -> usize {
    let mut at = 0;
    while !same(NAMES[at], name) {
        at += 1;
    }
    at
}

/// The place of what a module has in [`OBJECTS`].
pub(crate) const fn object(module: &str, name: &str) -> usize {
    let mut at = 0;
    while !(same(OBJECTS[at].0, module) && same(OBJECTS[at].1, name)) {
        at += 1;
    }
    at
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len()
}

/// The string at a place in [`NAMES`].
pub(crate) fn name_at(py: Python<'_>, at: usize) -> &Bound<'_, PyString> {
    known(py).names[at].bind(py)
}

/// The object at a place in [`OBJECTS`].
pub(crate) fn object_at(py: Python<'_>, at: usize) -> &Bound<'_, PyAny> {
    known(py).objects[at].bind(py)
}

/// A string of [`NAMES`], which Python compares by its address.
macro_rules! intern {
    ($py:expr, $name:literal) => {{
        const AT: usize = $crate::known::name($name);
        $crate::known::name_at($py, AT)
    }};
}
pub(crate) use intern;

/// An object of [`OBJECTS`].
macro_rules! imported {
    ($py:expr, $module:literal, $name:literal) => {{
        const AT: usize = $crate::known::object($module, $name);
        $crate::known::object_at($py, AT)
    }};
}
pub(crate) use imported;
