//! Makes batches: from a filled slab and its infos to the results of `step` and `reset`.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel_engine::episodes::Episodes;
use cartwheel_engine::info::{InfoWriter, RecordKind};
use cartwheel_engine::memory::{InfosAt, Lease};
use cartwheel_engine::pool::{Pool, Received};
use cartwheel_engine::space::{DType, Leaf};
use pyo3::exceptions::{PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Block, Blocks, SlabLease, as_flags, view};
use crate::known::intern;
use crate::pool::infos::{Finals, FinalsForm, Infos, terminal_frames};
use crate::pool::messages::{IncomingMessages, Message};
use crate::pool::texts::Texts;
use crate::space::{End, Node, Tree};

/// Batches of observations up to this size are copied out of their slab: such a copy costs no more
/// than the lease, and keeps no other memory. See `docs/decisions/slabs.md`.
pub(crate) const COPIED_BYTES: usize = 4096;

/// Rewards that are narrowed at once, in a buffer on the stack.
const REWARDS_AT_ONCE: usize = 64;

/// The results of one call, before they are put into a tuple.
#[derive(Debug)]
pub(crate) struct Outputs<'py> {
    pub(crate) observations: Bound<'py, PyAny>,
    /// Rewards, terminations, truncations.
    pub(crate) outcomes: [Bound<'py, PyAny>; 3],
    pub(crate) infos: Bound<'py, PyDict>,
    /// Additions to the infos, if the call was a step.
    pub(crate) finals: Finals<'py>,
}

impl<'py> Outputs<'py> {
    /// The result of a reset.
    pub(crate) fn into_observations(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyTuple::new(py, [self.observations, self.infos.into_any()])?.into_any())
    }

    /// The result of a step.
    pub(crate) fn into_tuple(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.finals.add_to(&self.infos)?;
        let [rewards, terminations, truncations] = self.outcomes;
        let parts = [self.observations, rewards, terminations, truncations, self.infos.into_any()];
        Ok(PyTuple::new(py, parts)?.into_any())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RewardForm {
    /// One number for each row.
    Numbers,
    /// The same in `float32`, as in `EnvPool`.
    Narrow,
    /// That many numbers for each row.
    Vectors(usize),
}

impl From<Option<usize>> for RewardForm {
    /// `None` for rewards that are numbers.
    fn from(width: Option<usize>) -> Self {
        width.map_or(Self::Numbers, Self::Vectors)
    }
}

/// Makes batches for Python.
#[derive(Debug)]
pub(crate) struct Batches {
    pub(crate) observations: Tree,
    /// Bytes of the observation of a row.
    row_bytes: usize,
    /// For each text of the observations, its strings; then those of final observations.
    texts: Vec<Texts>,
    pub(crate) rewards: RewardForm,
    /// The form of final observations in infos.
    form: FinalsForm,
    /// The largest number of batches that are kept as views.
    max_views: usize,
    /// Whether other processes write batches: a flag may be any byte then, and Python's truth values may not.
    /// All others come from [`Autoreset::settle`](cartwheel_engine::autoreset::Autoreset::settle).
    is_shared: bool,
    /// Whether the warning about copies was given.
    warned: AtomicBool,
}

impl Batches {
    pub(crate) fn new(
        observations: Tree,
        rewards: RewardForm,
        form: FinalsForm,
        max_views: usize,
        is_shared: bool,
    ) -> Self {
        let warned = AtomicBool::new(false);
        let texts = (0..2 * observations.texts.len()).map(|_| Texts::default()).collect();
        let row_bytes = observations.leaves.iter().map(Leaf::row_bytes).sum();
        Self { observations, row_bytes, texts, rewards, form, max_views, is_shared, warned }
    }

    /// Whether every step has final observations of all rows, in arrays.
    pub(super) fn has_dense_finals(&self) -> bool {
        self.form.dense
    }

    /// Makes Python's results of a filled slab whose infos were [loaded](load). Takes its lease where they
    /// are views of it.
    #[expect(clippy::inline_always, reason = "a move of the result waits for the stores before it")]
    #[inline(always)]
    pub(super) fn outputs<'py>(
        &self,
        callbacks: &Bound<'py, PyAny>,
        filled: &mut Option<Lease>,
        infos: &mut Infos,
        blocks: &mut Blocks,
    ) -> PyResult<Outputs<'py>> {
        let py = callbacks.py();
        let gathered = infos.gather(py, callbacks)?; // calls Python, which may raise anything
        let rows = infos.rows;
        if self.is_shared
            && let Some(lease) = filled.as_mut().filter(|lease| lease.is_recorded())
        {
            normalize_recorded(lease, rows);
        }
        let lease = of_batch(filled.as_ref())?;
        let block = self.block(py, blocks, rows)?;
        let outcomes = self.outcomes(py, block, lease, rows)?;
        let ended = self.form.ended(lease, |offset| self.flags(py, block, lease, rows, offset))?;
        let frames =
            if infos.opaque.is_empty() { None } else { terminal_frames(callbacks, infos)? };
        let (observations, finals) = self.observations(callbacks, filled, infos, block)?;
        let finals = Finals { form: self.form, observations: finals, ended, frames };
        Ok(Outputs { observations, outcomes, infos: gathered, finals })
    }

    /// Rewards, terminations and truncations of the first `rows` places of a filled slab. They are copies:
    /// they are small, and a kept reward must not keep large observations in memory.
    #[expect(clippy::inline_always, reason = "see `outputs`")]
    #[inline(always)]
    pub(super) fn outcomes<'py>(
        &self,
        py: Python<'py>,
        block: &Block,
        lease: &Lease,
        rows: usize,
    ) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let layout = lease.layout();
        Ok([
            match self.rewards {
                RewardForm::Numbers => {
                    let offset = layout.rewards_offset() + lease.first() * size_of::<f64>();
                    block.copied(py, DType::F64, rows, &[], |buffer| {
                        lease.read_new(offset, buffer)
                    })?
                }
                RewardForm::Narrow => narrow_rewards(py, block, lease, rows)?,
                RewardForm::Vectors(width) => vector_rewards(py, block, lease, rows, width)?,
            },
            self.flags(py, block, lease, rows, layout.terminations_offset())?,
            self.flags(py, block, lease, rows, layout.truncations_offset())?,
        ])
    }

    fn flags<'py>(
        &self,
        py: Python<'py>,
        block: &Block,
        lease: &Lease,
        rows: usize,
        offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        block.copied(py, DType::Bool, rows, &[], |buffer| {
            let flags = lease.read_new(offset + lease.first(), buffer);
            if self.is_shared {
                as_flags(flags);
            }
            flags
        })
    }

    /// Memory for rewards and flags of `rows` rows, and for observations up to [`COPIED_BYTES`].
    #[expect(clippy::inline_always, reason = "see `outputs`")]
    #[inline(always)]
    pub(super) fn block<'a>(
        &self,
        py: Python<'_>,
        blocks: &'a mut Blocks,
        rows: usize,
    ) -> PyResult<&'a Block> {
        let reward = match self.rewards {
            RewardForm::Numbers | RewardForm::Narrow => size_of::<f64>(),
            RewardForm::Vectors(width) => width * size_of::<f64>(),
        };
        let flags = if self.form.dense { 4 } else { 2 };
        let outcomes = Block::space(reward * rows) + flags * Block::space(rows);
        let observations = if self.is_small(rows) { self.space(rows) } else { 0 };
        blocks.next(py, outcomes + observations)
    }

    /// Whether the observations of `rows` rows are always copied.
    fn is_small(&self, rows: usize) -> bool {
        self.row_bytes * rows <= COPIED_BYTES
    }

    /// The space of copied observations of `rows` rows, and of the final ones where there are some.
    fn space(&self, rows: usize) -> usize {
        let leaves = self.observations.leaves.iter();
        let space: usize = leaves.map(|leaf| Block::space(leaf.row_bytes() * rows)).sum();
        if self.form.dense { 2 * space } else { space }
    }

    /// The observations of a filled slab, and the final ones where it has some: views that take its
    /// lease, or copies where the slab will be reused or a view costs more. The final ones of a batch
    /// of a rollout are always copies, since the next step overwrites them. Small copies are made in
    /// the [block](Batches::block) of the batch.
    pub(super) fn observations<'py>(
        &self,
        callbacks: &Bound<'py, PyAny>,
        filled: &mut Option<Lease>,
        infos: &Infos,
        block: &Block,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let py = callbacks.py();
        let lease = of_batch(filled.as_ref())?;
        let leaves = &self.observations.leaves;
        let rows = infos.rows;
        if lease.must_copy() && !self.warned.swap(true, Ordering::Relaxed) {
            let more = if lease.is_at_limit() {
                format!(", or give max_batches={}", 2 * self.max_views)
            } else {
                ": there is no memory for more".to_owned()
            };
            let text = format!(
                "too many batches are kept: observations are copied from now on. Keep fewer batches{more}"
            );
            let text = CString::new(text)?;
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
        }
        let has_finals = self.form.dense;
        let (texts, final_texts) = self.texts(py, lease, rows)?;
        let make = |array: &dyn Fn(usize) -> PyResult<Bound<'py, PyAny>>, texts: &_| {
            assemble(callbacks, &self.observations.root, array, texts, infos)
        };
        let copy = |block: &Block, number: usize, first: usize| {
            let leaf = &leaves[number];
            let layout = lease.layout();
            let row_bytes = layout.row_bytes(first + number);
            let offset = layout.leaf_offset(first + number) + lease.first() * row_bytes;
            block.copied(py, leaf.dtype, rows, &leaf.shape, |buffer| lease.read_new(offset, buffer))
        };
        let copy_finals = |block: &Block| {
            make(&|number| copy(block, number, leaves.len()), &final_texts).map(Some)
        };
        if lease.must_copy() || lease.may_be_filled_again() || self.is_small(rows) {
            let own;
            let block = if self.is_small(rows) {
                block
            } else {
                own = Block::new(py, self.space(rows))?;
                &own
            };
            let observations = make(&|number| copy(block, number, 0), &texts)?;
            return Ok((observations, if has_finals { copy_finals(block)? } else { None }));
        }
        let copied = if has_finals && lease.is_recorded() {
            copy_finals(&Block::new(py, self.space(rows))?)?
        } else {
            None
        };
        let owner = Bound::new(py, SlabLease::new(taken(filled)?))?;
        let show = |number: usize| view(&owner, number, rows);
        let observations = make(&show, &texts)?;
        if !has_finals || copied.is_some() {
            return Ok((observations, copied));
        }
        let show = |number: usize| view(&owner, leaves.len() + number, rows);
        Ok((observations, Some(make(&show, &final_texts)?)))
    }

    /// The texts of a batch, and of its final observations where every step has them.
    fn texts<'py>(
        &self,
        py: Python<'py>,
        lease: &Lease,
        rows: usize,
    ) -> PyResult<(Strings<'py>, Strings<'py>)> {
        if self.texts.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let Tree { texts: numbers, leaves, .. } = &self.observations;
        let read = |kept: &[Texts], first: usize| {
            let of = |(texts, &number): (&Texts, &usize)| {
                let row_bytes = leaves[number].row_bytes();
                let offset = lease.layout().leaf_offset(first + number) + lease.first() * row_bytes;
                texts.read(py, lease, rows, offset, row_bytes)
            };
            kept.iter().zip(numbers).map(of).collect::<PyResult<_>>()
        };
        let (kept, of_finals) = self.texts.split_at(numbers.len());
        let finals = if self.form.dense { read(of_finals, leaves.len())? } else { Vec::new() };
        Ok((read(kept, 0)?, finals))
    }
}

/// Makes truth values of the flags of a batch of a rollout: its arrays show them where they are.
#[cold]
fn normalize_recorded(lease: &mut Lease, rows: usize) {
    let layout = lease.layout();
    let offsets = [layout.terminations_offset(), layout.truncations_offset()];
    let mut flags = vec![0; rows];
    for offset in offsets {
        lease.read(offset, &mut flags);
        as_flags(&mut flags);
        lease.write(offset, &flags);
    }
}

/// The lease of what a call returned.
pub(super) fn taken(lease: &mut Option<Lease>) -> PyResult<Lease> {
    lease.take().ok_or_else(no_batch)
}

/// The same, which stays where it is.
pub(super) fn of_batch(lease: Option<&Lease>) -> PyResult<&Lease> {
    lease.ok_or_else(no_batch)
}

fn no_batch() -> PyErr {
    PyValueError::new_err("the call has no batch")
}

/// Loads the infos of a batch, or raises the exception of the lowest row that failed. `seconds` is the
/// time limit of the call.
pub(super) fn load(
    callbacks: &Bound<'_, PyAny>,
    pool: &Pool,
    infos: &mut Infos,
    received: &Received,
    messages: &IncomingMessages,
    seconds: Option<f64>,
) -> PyResult<()> {
    let rows = &received.rows;
    infos.begin(rows, received.infos.len());
    if !messages.faults.is_empty() {
        let arguments = (messages.faults.clone(), rows.sent(), seconds);
        callbacks.call_method1(intern!(callbacks.py(), "raise_faults"), arguments)?;
    }
    let mut rests = messages.rests.iter();
    for (&(place, infos_at), stream) in received.infos.iter().zip(&mut infos.streams) {
        let row = rows.at(place);
        match infos_at {
            InfosAt::Memory(bytes) => pool.load_infos(row, bytes, stream),
            InfosAt::Channel => {
                let message = rests.next().expect("one for each that was announced");
                // With a channel, each row that was sent is announced alone.
                let alone = rows.sent().map(|_| row..row + 1);
                let rows = alone.unwrap_or_else(|| pool.shards()[pool.shard_of(row)].clone());
                *stream = receive_rest(callbacks, *message, rows, seconds)?;
            }
        }
    }
    Ok(())
}

/// Infos of these rows, which did not fit into shared memory; or an error if they were lost with
/// their worker.
fn receive_rest(
    callbacks: &Bound<'_, PyAny>,
    message: Message,
    rows: Range<usize>,
    seconds: Option<f64>,
) -> PyResult<Vec<u8>> {
    let rest =
        callbacks.call_method1(intern!(callbacks.py(), "receive_rest"), (message, seconds))?;
    if !rest.is_none() {
        return rest.extract();
    }
    let mut lost = InfoWriter::new();
    for row in rows {
        let record = lost.begin(RecordKind::Info, row, 0);
        lost.key("infos_lost");
        lost.bool(true);
        lost.end(record);
    }
    Ok(lost.stream().to_vec())
}

/// Adds the rows of a batch to its infos: as `env_index`, or where episodes are counted under the
/// names of `EnvPool`, with the steps of each row. The environments and their players are one array:
/// a second one would cost a step of few rows a thirtieth of its time.
pub(crate) fn name_rows(
    infos: &Bound<'_, PyDict>,
    episodes: Option<&Episodes>,
    rows: impl ExactSizeIterator<Item = usize> + Clone,
    blocks: &mut Blocks,
) -> PyResult<()> {
    let py = infos.py();
    let Some(elapsed) = episodes.map(Episodes::elapsed) else {
        let block = blocks.next(py, Block::space(rows.len() * size_of::<i64>()))?;
        let rows = numbers(py, block, DType::I64, rows.map(|row| (row as u64).to_ne_bytes()))?;
        return infos.set_item(intern!(py, "env_index"), rows);
    };
    let block = blocks.next(py, 2 * Block::space(rows.len() * size_of::<i32>()))?;
    let steps = rows.clone().map(|row| elapsed[row].to_ne_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "a pool has fewer than 2^32 rows")]
    let rows = numbers(py, block, DType::I32, rows.map(|row| (row as u32).to_ne_bytes()))?;
    let players = PyDict::new(py);
    players.set_item(intern!(py, "env_id"), &rows)?;
    infos.set_item(intern!(py, "env_id"), rows)?;
    infos.set_item(intern!(py, "players"), players)?;
    infos.set_item(intern!(py, "elapsed_step"), numbers(py, block, DType::I32, steps)?)
}

/// An array of numbers from their bytes.
fn numbers<'py, const N: usize>(
    py: Python<'py>,
    block: &Block,
    dtype: DType,
    numbers: impl ExactSizeIterator<Item = [u8; N]>,
) -> PyResult<Bound<'py, PyAny>> {
    block.filled(py, dtype, numbers.len(), &[], |buffer| {
        let (places, _) = buffer.as_chunks_mut();
        places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    })
}

/// A copy of rewards of several numbers each.
fn vector_rewards<'py>(
    py: Python<'py>,
    block: &Block,
    lease: &Lease,
    rows: usize,
    width: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = lease.layout();
    let offset = layout.rewards_offset() + lease.first() * layout.reward_bytes();
    block.copied(py, DType::F64, rows, &[width], |buffer| lease.read_new(offset, buffer))
}

/// A copy of rewards in `float32`, rounded to the nearest.
pub(super) fn narrow_rewards<'py>(
    py: Python<'py>,
    block: &Block,
    lease: &Lease,
    rows: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let mut offset = lease.layout().rewards_offset() + lease.first() * size_of::<f64>();
    block.filled(py, DType::F32, rows, &[], |buffer| {
        let mut wide = [0_u8; REWARDS_AT_ONCE * size_of::<f64>()];
        for narrow in buffer.chunks_mut(REWARDS_AT_ONCE * size_of::<f32>()) {
            let wide = &mut wide[..narrow.len() * 2];
            lease.read(offset, wide);
            offset += wide.len();
            let (places, _) = narrow.as_chunks_mut();
            let (rewards, _) = wide.as_chunks();
            for (place, reward) in places.iter_mut().zip(rewards) {
                #[expect(clippy::cast_possible_truncation, reason = "trainers take narrow rewards")]
                let reward = f64::from_ne_bytes(*reward) as f32;
                *place = reward.to_ne_bytes();
            }
        }
    })
}

/// The texts of each text leaf, one string for each row.
type Strings<'py> = Vec<Bound<'py, PyTuple>>;

/// Makes observations: leaves, which `array` makes by their number, texts, and opaque parts from
/// infos.
fn assemble<'py>(
    callbacks: &Bound<'py, PyAny>,
    node: &Node,
    array: &dyn Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    texts: &[Bound<'py, PyTuple>],
    infos: &Infos,
) -> PyResult<Bound<'py, PyAny>> {
    let py = callbacks.py();
    node.assemble(py, &|end| match end {
        End::Leaf(leaf) => array(leaf),
        End::Text(text) => Ok(texts[text].as_any().clone()),
        End::Opaque(number, space) => {
            let found = PyDict::new(py);
            for opaque in infos.opaque.iter().filter(|opaque| opaque.part == number) {
                found.set_item(opaque.at.place, infos.value(py, opaque.at)?)?;
            }
            callbacks.call_method1(intern!(py, "batch_opaque"), (space, found, infos.rows))
        }
    })
}
