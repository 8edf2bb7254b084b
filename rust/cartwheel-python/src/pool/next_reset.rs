//! What rows get for their next automatic reset: kept here, and sent with the next step of the row.
//!
//! A worker reads its channel only for a task that says so. So nothing can be sent to a worker when
//! the caller asks for it: the worker may be stepping other rows, and a long message needs a reader.

use pyo3::prelude::*;

use crate::known::intern;
use crate::pool::posted::To;
use crate::pool::state::State;
use crate::worker::shard::NEXT_RESETS;

impl State {
    pub(super) fn keep_next_resets(&mut self, rows: Vec<usize>, packed: Vec<Option<Py<PyAny>>>) {
        for (row, packed) in rows.into_iter().zip(packed) {
            match packed {
                Some(packed) => self.next_resets.insert(row, packed),
                None => self.next_resets.remove(&row),
            };
        }
    }

    /// The messages that go with a step of these rows; `None` if nothing was kept for them.
    pub(super) fn pack_next_resets<'py>(
        &self,
        py: Python<'py>,
        rows: impl Iterator<Item = usize>,
    ) -> PyResult<Option<NextResets<'py>>> {
        if self.next_resets.is_empty() {
            return Ok(None);
        }
        let rows: Vec<_> = rows.collect();
        if rows.iter().all(|row| !self.next_resets.contains_key(row)) {
            return Ok(None);
        }
        let packed: Vec<_> = rows.iter().map(|row| self.next_resets.get(row)).collect();
        let link = self.link.bind(py);
        let messages = link.call_method1(intern!(py, "pack_next_resets"), (&rows, packed))?;
        Ok(Some(NextResets { rows, messages }))
    }

    /// Sends the messages that belong to a step that has just begun with [`flags_of`] them.
    pub(super) fn send_next_resets(
        &mut self,
        py: Python<'_>,
        next: Option<NextResets<'_>>,
    ) -> PyResult<()> {
        let Some(next) = next else { return Ok(()) };
        for row in next.rows {
            self.next_resets.remove(&row);
        }
        self.post(py, To::Some, &next.messages)
    }
}

/// What rows of a step get for their next automatic reset.
pub(super) struct NextResets<'py> {
    /// The rows of the step.
    rows: Vec<usize>,
    messages: Bound<'py, PyAny>,
}

/// The flags of a step with these messages.
pub(super) fn flags_of(next: Option<&NextResets<'_>>) -> u32 {
    if next.is_some() { NEXT_RESETS } else { 0 }
}
