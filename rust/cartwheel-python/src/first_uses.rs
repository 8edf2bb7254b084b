//! The first uses of everything that is looked up once.
//!
//! A static that is filled by its first use hangs every process that is forked while another thread fills
//! it: that thread does not exist there. The statics of PyO3 let other threads run at just that moment. So
//! all are filled while `cartwheel` is imported: ours, and those of PyO3, of NumPy's crate, of the engine
//! and of the environments that our calls can reach.

use cartwheel_engine::memory::process_id;
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PySequence};

use crate::array;
use crate::known;

/// Makes the first uses; documented in the stub.
#[pyfunction]
pub(crate) fn make_first_uses(py: Python<'_>) -> PyResult<()> {
    known::look_up(py)?;
    let array = array::make_first_uses(py)?;
    cartwheel_envs::make_first_uses();
    process_id();
    for class in [PySequence::type_object(py), PyMapping::type_object(py)] {
        class.name()?;
        class.qualname()?;
        class.module()?;
        class.fully_qualified_name()?;
    }
    let _ = array.cast::<PyDict>().map_err(|other| PyErr::from(other).to_string());
    let _ = array.getattr("missing").map_err(|error| error.to_string());
    array.call_method0("any")?.extract::<bool>()?;
    Ok(())
}
