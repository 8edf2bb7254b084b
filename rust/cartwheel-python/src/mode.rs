//! Autoreset modes, by Gymnasium's names.

use cartwheel_engine::autoreset::AutoresetMode;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The mode with this name, the value of Gymnasium's enum member.
pub(crate) fn mode(value: &str) -> PyResult<AutoresetMode> {
    Ok(match value {
        "NextStep" => AutoresetMode::NextStep,
        "SameStep" => AutoresetMode::SameStep,
        "Disabled" => AutoresetMode::Disabled,
        other => {
            return Err(PyValueError::new_err(format!("{other:?} is not an autoreset mode")));
        }
    })
}
