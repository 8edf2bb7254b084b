//! The first uses of everything that is looked up once.
//!
//! A static that is filled by its first use hangs every process that is forked while another thread fills
//! it: that thread does not exist there. The statics of PyO3 let other threads run at just that moment. So
//! all are filled while `cartwheel` is imported: ours, and those of PyO3, of NumPy's crate, of the engine
//! and of the environments that our calls can reach. A test reads those of PyO3 that the module has.
//!
//! The locks that threads take without the interpreter, those of MuJoCo's environments and that of pools
//! for compiled functions, are held at each fork from then on. A lock of one object is another matter: a
//! child uses no pool of its parent.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel_engine::memory::process_id;
use cartwheel_engine::platform::call_around_forks;
use cartwheel_mujoco::forks as mujoco;
use pyo3::PyTypeInfo;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PySequence};

use crate::convert::GivenRules;
use crate::descriptor::PyDescriptor;
use crate::returns::PyTransitions;
use crate::{array, ffi, known};

/// An object that `GivenRules` are made of: what PyO3 derives has a static for each name.
const RULES: &CStr = c"dict(max_episode_steps=None, ignore_terminations=False, action_repeat=1, staggered_reset=False)";
/// An object that `PyTransitions` are made of, from an array.
const TRANSITIONS: &CStr = c"__import__('types').SimpleNamespace(rewards=array, terminated=None, truncated=None, valid=None, gamma=None, bootstrap='', num_threads=None)";

/// Whether [`call_around_forks`] was called: the package may be imported again.
static ARE_LOCKS_HELD_AT_FORKS: AtomicBool = AtomicBool::new(false);

#[pyfunction]
pub(crate) fn make_first_uses(py: Python<'_>) -> PyResult<()> {
    known::look_up(py)?;
    let array = array::make_first_uses(py)?;
    cartwheel_envs::make_first_uses();
    process_id();
    // `Relaxed`: it only decides who calls.
    if !ARE_LOCKS_HELD_AT_FORKS.swap(true, Ordering::Relaxed) {
        call_around_forks(mujoco::before_fork, mujoco::after_fork)?;
        call_around_forks(ffi::before_fork, ffi::after_fork)?;
    }
    for class in [PySequence::type_object(py), PyMapping::type_object(py)] {
        class.name()?;
        class.qualname()?;
        class.module()?;
        class.fully_qualified_name()?;
    }
    PanicException::type_object(py);
    py.eval(RULES, None, None)?.extract::<GivenRules>()?;
    let array_alone = PyDict::new(py);
    array_alone.set_item("array", &array)?;
    py.eval(TRANSITIONS, None, Some(&array_alone))?.extract::<PyTransitions<'_>>()?;
    let _ = py.eval(c"None.missing", None, None).map_err(|error| format!("{error:?}"));
    let _ = PyDescriptor::type_object(py).call1(("no number",));
    let _ = array.cast::<PyDict>().map_err(|other| PyErr::from(other).to_string());
    let _ = array.getattr("missing").map_err(|error| error.to_string());
    array.call_method0("any")?.extract::<bool>()?;
    Ok(())
}
