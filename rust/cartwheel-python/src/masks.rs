//! Masks of actions of environments with several agents; documented in the stub.

use cartwheel_kernels::masks::{self, ShownMasks};
use cartwheel_kernels::wrappers::existing_rows;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Borrowed, BorrowedMut};

#[pyfunction]
#[pyo3(signature = (known, rows, shown, ignored, /, *, replaces))]
pub(crate) fn keep_masks(
    known: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
    shown: Option<(Bound<'_, PyAny>, usize, Bound<'_, PyAny>)>,
    ignored: &Bound<'_, PyAny>,
    replaces: bool,
) -> PyResult<()> {
    let mut known = BorrowedMut::flags("known", known, 2)?;
    let (environments, actions) = (known.shape()[0], known.shape()[1]);
    let ignored = Borrowed::flags("ignored", ignored, 1)?;
    let ignored = ignored.cells()?;
    let rows = rows.map(|rows| Borrowed::<i64>::new("rows", rows, 1)).transpose()?;
    let rows = rows.as_ref().map(|rows| PyResult::Ok(rows.cells()?.to_vec())).transpose()?;
    let rows = rows.map(|rows| existing_rows(rows, environments)).transpose();
    let rows = rows.map_err(|error| PyIndexError::new_err(error.to_string()))?;
    let count = rows.as_ref().map_or(environments, Vec::len);
    if ignored.len() != count {
        let text = format!("`ignored` must have {count} elements, got {}", ignored.len());
        return Err(PyValueError::new_err(text));
    }
    let shown = match &shown {
        None => None,
        Some((masks, place, is_shown)) => {
            let masks = Borrowed::flags("masks", masks, 3)?;
            let is_shown = Borrowed::flags("is_shown", is_shown, 1)?;
            let agents = masks.shape()[1];
            if masks.shape() != [count, agents, actions] || *place >= agents {
                let text = format!(
                    "`masks` must have the shape ({count}, more than {place}, {actions}), got {:?}",
                    masks.shape()
                );
                return Err(PyValueError::new_err(text));
            }
            if is_shown.shape() != [count] {
                let text = format!("`is_shown` must have {count} elements");
                return Err(PyValueError::new_err(text));
            }
            Some((masks, agents, *place, is_shown))
        }
    };
    let shown = match &shown {
        None => None,
        Some((masks, agents, place, is_shown)) => Some(ShownMasks {
            masks: masks.cells()?,
            agents: *agents,
            place: *place,
            is_shown: is_shown.cells()?,
        }),
    };
    let known = known.cells()?;
    match rows {
        None => masks::keep_masks(known, actions, 0..count, shown, ignored, replaces),
        Some(rows) => {
            masks::keep_masks(known, actions, rows.into_iter(), shown, ignored, replaces);
        }
    }
    Ok(())
}
