//! Masks of actions of the batch that was returned last.
//!
//! A step of all rows replaces every mask. Its infos are kept until the next batch anyway, so they are
//! read when masks are asked for, or when a batch of other rows is about to replace them.

use cartwheel_engine::info::ActionMasks;
use cartwheel_engine::pool::{Received, ReceivedRows};
use cartwheel_engine::space::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Block;
use crate::pool::State;
use crate::pool::infos::Infos;

/// The place of masks: their key in infos, the number of actions, the number of the observation leaf
/// that has them instead, if there is one, and whether the caller named the key.
pub(super) type MaskSource = (String, usize, Option<usize>, bool);

/// The masks of all rows, and the rows of the last batch.
#[derive(Debug)]
pub(super) struct Masks {
    known: ActionMasks,
    /// The observation leaf that has masks; `None`: infos have them.
    leaf: Option<usize>,
    /// Whether the caller named the key: then any infos may be the first that have it.
    is_named: bool,
    presence: Presence,
    /// Whether the last batch has all rows, and its infos have not been read.
    is_unread: bool,
    /// The rows of a pending reset that is not for all of them.
    resetting: Option<Vec<usize>>,
    /// The rows of the last batch; `None`: all of them.
    batch: Option<Vec<usize>>,
    /// The elements of the leaf.
    elements: Vec<u8>,
}

/// Whether environments show masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// No batch has had infos; or none has had the key that the caller named.
    Undecided,
    Present,
    Absent,
}

impl Masks {
    pub(super) fn new((key, actions, leaf, is_named): MaskSource, rows: usize) -> Self {
        let presence = if leaf.is_some() { Presence::Present } else { Presence::Undecided };
        Self {
            known: ActionMasks::new(key, actions, rows),
            leaf,
            is_named,
            presence,
            is_unread: false,
            resetting: None,
            batch: None,
            elements: Vec::new(),
        }
    }

    /// A batch of these rows is about to replace the infos.
    pub(super) fn before(&mut self, infos: &Infos, rows: &ReceivedRows) {
        if rows.sent().is_some() {
            self.take_unread(infos);
        }
    }

    /// A batch was received, and its infos were loaded.
    pub(super) fn after(&mut self, infos: &Infos, received: &Received) {
        if self.presence == Presence::Undecided && infos.num_streams > 0 {
            let mut streams = infos.streams[..infos.num_streams].iter();
            let is_found = streams.any(|stream| self.known.is_in(stream).unwrap_or(false));
            if is_found {
                self.presence = Presence::Present;
            } else if !self.is_named {
                self.presence = Presence::Absent;
            }
        }
        let resetting = self.resetting.take();
        if self.presence != Presence::Present {
            return;
        }
        self.batch = received.rows.sent().map(<[usize]>::to_vec);
        if let Some(leaf) = self.leaf {
            self.take_leaf(leaf, received);
            return;
        }
        self.is_unread = self.batch.is_none() && resetting.is_none();
        if let Some(rows) = resetting.as_ref().or(self.batch.as_ref()) {
            self.known.clear(rows.iter().copied());
            self.take_streams(infos);
        }
    }

    /// A compiled function received a batch, whose infos are not read.
    pub(super) fn after_compiled(&mut self, infos: &Infos, received: &Received) {
        match self.leaf {
            Some(leaf) => {
                self.batch = received.rows.sent().map(<[usize]>::to_vec);
                self.take_leaf(leaf, received);
            }
            None if self.are_present() => self.lose(infos, &received.rows, None),
            None => {}
        }
    }

    /// The results of these rows are not seen, so nothing is known of their masks; of the others, which
    /// a reset did not concern, `is_reset` is false.
    pub(super) fn lose(
        &mut self,
        infos: &Infos,
        rows: &ReceivedRows,
        is_reset: Option<&dyn Fn(usize) -> bool>,
    ) {
        self.resetting = None;
        self.take_unread(infos); // of the lost batch, maybe: that has all rows, and the next line clears them
        self.known.clear(rows.iter().filter(|&row| is_reset.is_none_or(|is_reset| is_reset(row))));
    }

    /// A reset of the rows in `mask` has begun; `None`: of all of them.
    pub(super) fn begin_reset(&mut self, mask: Option<&[u8]>) {
        let mask = mask.filter(|_| self.presence != Presence::Absent);
        self.resetting = mask.map(|mask| (0..mask.len()).filter(|&row| mask[row] != 0).collect());
    }

    /// Reads the infos of a batch of all rows, if they have not been read.
    pub(super) fn take_unread(&mut self, infos: &Infos) {
        if std::mem::take(&mut self.is_unread) {
            self.known.clear(0..infos.rows);
            self.take_streams(infos);
        }
    }

    /// Whether environments show masks.
    fn are_present(&self) -> bool {
        self.presence == Presence::Present
    }

    /// The same; `None` while no batch has had infos.
    pub(super) fn are_shown(&self) -> Option<bool> {
        (self.presence != Presence::Undecided).then_some(self.are_present())
    }

    /// Continues with masks of all rows, unless they are of another size or observations have masks.
    pub(super) fn restore(&mut self, kept: &[u8]) {
        if self.leaf.is_none() && self.known.restore(kept) {
            (self.presence, self.is_unread, self.batch) = (Presence::Present, false, None);
        }
    }

    fn take_streams(&mut self, infos: &Infos) {
        for stream in &infos.streams[..infos.num_streams] {
            if self.known.add_stream(stream).is_err() {
                return; // what gathers the infos raises
            }
        }
    }

    fn take_leaf(&mut self, leaf: usize, received: &Received) {
        let Some(lease) = &received.lease else { return };
        let of_leaf = lease.layout().leaf(leaf);
        let (bytes, dtype) = (of_leaf.row_bytes(), of_leaf.dtype);
        self.elements.resize(received.rows.iter().len() * bytes, 0);
        let offset = lease.layout().leaf_offset(leaf) + lease.first() * bytes;
        lease.read(offset, &mut self.elements);
        self.known.add_leaf(received.rows.iter(), dtype, &self.elements);
    }
}

impl State {
    /// The masks of rows, by default those of the last batch; `None` if there are none.
    pub(super) fn action_masks<'py>(
        &mut self,
        py: Python<'py>,
        rows: Option<Vec<usize>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Self { masks, infos, pool, .. } = self;
        let Some(masks) = masks.as_mut().filter(|masks| masks.are_present()) else {
            return Ok(None);
        };
        masks.take_unread(infos);
        if let Some(found) = masks.known.mismatch() {
            let (key, actions, row) = (masks.known.key(), masks.known.actions(), found.row);
            let values = found.values.map_or("other values than numbers".to_owned(), |values| {
                format!("{values} values")
            });
            return Err(PyValueError::new_err(format!(
                "`infos[{key:?}]` of row {row} has {values}, and the action space needs {actions}, one \
                 for each action: name another key, or none, by `action_mask`"
            )));
        }
        let mut is_over = vec![false; self.rows];
        for row in pool.rows_over() {
            is_over[row] = true;
        }
        let rows = rows.or_else(|| masks.batch.clone()).unwrap_or_else(|| (0..self.rows).collect());
        let actions = masks.known.actions();
        let block = Block::new(py, Block::space(rows.len() * actions))?;
        let shown = block.filled(py, DType::Bool, rows.len(), &[actions], |buffer| {
            for (&row, mask) in rows.iter().zip(buffer.chunks_exact_mut(actions)) {
                masks.known.read(row, is_over[row], mask);
            }
        })?;
        Ok(Some(shown))
    }

    /// The masks from infos as they are kept.
    pub(super) fn kept_masks(&mut self, py: Python<'_>) -> Option<Py<PyBytes>> {
        let masks = self.masks.as_mut()?;
        if !masks.are_present() || masks.leaf.is_some() {
            return None;
        }
        masks.take_unread(&self.infos);
        Some(PyBytes::new(py, masks.known.bytes()).unbind())
    }
}
