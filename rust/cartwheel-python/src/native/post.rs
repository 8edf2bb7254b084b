//! Messages to native shards, from the tuples that `cartwheel.native.callbacks` packs to the mailboxes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::PoisonError;

use cartwheel_engine::native::{
    Draw, ExternalInfo, ExternalRewards, Request, RowOptions, RowReset, RowState, Seed,
    TerminalState,
};
use cartwheel_engine::plugin::ResetOptions;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::error::to_py_err;
use crate::native::PyNativeEnvs;
use crate::native::stream::{to_seed, to_stream};
use crate::native::value::to_value;

/// A message to one shard: its name and its arguments, see [`PyNativeEnvs::post_request`].
type Packed<'py> = Bound<'py, PyAny>;

impl PyNativeEnvs {
    /// Posts the message of a reset, or one request to each shard; replaces earlier ones.
    pub(crate) fn post(&self, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        for (shard, message) in messages.try_iter()?.enumerate() {
            let message = message?;
            if is_named(&message, "reset")? {
                let (_, mask, seeds, options) = message.extract::<ResetMessage<'_>>()?;
                self.post_reset(mask.as_deref(), seeds.as_deref(), options.as_ref())?;
            } else {
                self.post_request(shard, &message)?;
            }
        }
        Ok(())
    }

    /// Posts how rows are reset that are sent next, to the shards that the messages name.
    pub(crate) fn post_row_resets(&self, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        for message in messages.try_iter()? {
            let (shard, message) = message?.extract::<(usize, Packed<'_>)>()?;
            let (row, how, options) = if is_named(&message, "reset")? {
                let (_, row, seed, options) = message.extract::<RowResetMessage<'_>>()?;
                let (how, options) = self.row_reset(seed, options.as_deref())?;
                (row, how, options)
            } else {
                let (_, row, state) = message.extract::<(PyBackedStr, usize, PyBackedBytes)>()?;
                let state = RowState::read(&self.kind, &state).map_err(to_py_err)?;
                (row, RowReset::Restore(Box::new(state)), None)
            };
            self.mailbox(shard)?.post_row_reset(row, how, options);
        }
        Ok(())
    }

    /// Posts rewards and flags of all rows, to each shard its own.
    ///
    /// # Errors
    ///
    /// `ValueError` unless there is one entry for each row.
    pub(crate) fn post_rewards(&self, all: &ExternalRewards) -> PyResult<()> {
        let ExternalRewards { rewards, terminations, truncations, infos } = all;
        let rows = self.num_rows();
        for len in [rewards.len(), terminations.len(), truncations.len()] {
            if len != rows {
                return Err(PyValueError::new_err(format!("{len} outcomes for {rows} rows")));
            }
        }
        for info in infos {
            let expected = rows * info.entry_bytes();
            if info.elements.len() != expected {
                let (got, name) = (info.elements.len(), &info.name);
                let text = format!("{got} bytes of `{name}` for {rows} rows, not {expected}");
                return Err(PyValueError::new_err(text));
            }
        }
        for (mailbox, rows) in self.mailboxes().iter().zip(&self.rows) {
            let own = |info: &ExternalInfo| {
                let bytes = info.entry_bytes();
                let elements = info.elements[rows.start * bytes..rows.end * bytes].to_vec();
                let (name, shape) = (info.name.clone(), info.shape.clone());
                ExternalInfo { name, dtype: info.dtype, shape, elements }
            };
            mailbox.post_rewards(ExternalRewards {
                infos: infos.iter().map(own).collect(),
                rewards: rewards[rows.clone()].to_vec(),
                terminations: terminations[rows.clone()].to_vec(),
                truncations: truncations[rows.clone()].to_vec(),
            });
        }
        Ok(())
    }

    /// Seed and options of the reset of one row.
    pub(super) fn row_reset(
        &self,
        seed: Option<Bound<'_, PyAny>>,
        options: Option<&str>,
    ) -> PyResult<(RowReset, Option<ResetOptions>)> {
        let options = options.map(|options| self.kind.reset_options(options));
        let options = options.transpose().map_err(to_py_err)?;
        Ok((seed.map_or(Ok(RowReset::Continue), |seed| seeded(&seed))?, options))
    }

    /// Posts the details of the next reset to all shards. Rows with equal options share them.
    fn post_reset(
        &self,
        mask: Option<&[u8]>,
        seeds: Option<&[Option<Bound<'_, PyAny>>]>,
        options: Option<&GivenOptions>,
    ) -> PyResult<()> {
        let all = self.num_rows();
        let options = options.map_or(Ok(RowOptions::None), |given| self.parsed(given))?;
        let lengths = [
            mask.map(<[u8]>::len),
            seeds.map(<[_]>::len),
            if let RowOptions::OfEach(each) = &options { Some(each.len()) } else { None },
        ];
        if let Some(got) = lengths.into_iter().flatten().find(|length| *length != all) {
            return Err(PyValueError::new_err(format!("{got} entries for {all} rows")));
        }
        let how = |row: usize| match seeds.and_then(|seeds| seeds[row].as_ref()) {
            _ if mask.is_some_and(|mask| mask[row] == 0) => Ok(RowReset::Leave),
            None => Ok(RowReset::Continue),
            Some(seed) => seeded(seed),
        };
        let each = self.rows.iter().map(|rows| rows.clone().map(how).collect());
        let each = each.collect::<PyResult<Vec<Vec<RowReset>>>>()?;
        self.post_shard_resets(each, &options);
        Ok(())
    }

    /// Posts the details of the next reset to all shards: of the rows of a mask, by default of all, with
    /// seeds of all rows, by default none.
    pub(crate) fn post_compiled_reset(&self, mask: Option<&[u8]>, seeds: Option<&[u128]>) {
        let how = |row: usize| match seeds {
            _ if mask.is_some_and(|mask| mask[row] == 0) => RowReset::Leave,
            None => RowReset::Continue,
            Some(seeds) => RowReset::Seed(seeds[row]),
        };
        let each = self.rows.iter().map(|rows| rows.clone().map(how).collect()).collect();
        self.post_shard_resets(each, &RowOptions::None);
    }

    /// Posts the resets of each shard's rows.
    fn post_shard_resets(&self, each: Vec<Vec<RowReset>>, options: &RowOptions) {
        for ((mailbox, rows), how) in self.mailboxes().iter().zip(&self.rows).zip(each) {
            let options = match options {
                RowOptions::None => RowOptions::None,
                RowOptions::OfAll(options) => RowOptions::OfAll(options.clone()),
                RowOptions::OfEach(each) => RowOptions::OfEach(each[rows.clone()].to_vec()),
            };
            mailbox.post_reset(how, options);
        }
    }

    /// Posts a request to one shard. A request is a name, which is followed by the shard's rows that
    /// it is for, except where it is for all of them, and by its arguments.
    fn post_request(&self, shard: usize, message: &Packed<'_>) -> PyResult<()> {
        let mailbox = self.mailbox(shard)?;
        let first = self.rows[shard].start;
        let own = |rows: Vec<usize>| rows.into_iter().map(|row| row - first);
        let name = message.get_item(0)?.extract::<PyBackedStr>()?;
        mailbox.post_request(match &*name {
            "request" => Self::parameter_request(first, message)?,
            "save" => {
                let (_, rows) = message.extract::<(Packed<'_>, Vec<usize>)>()?;
                Request::Save(own(rows).collect())
            }
            "sample" => {
                let (_, rows, seeds) =
                    message.extract::<(Packed<'_>, Vec<usize>, Vec<Packed<'_>>)>()?;
                let seeds = own(rows).zip(&seeds).map(|(row, seed)| Ok((row, to_seed(seed)?)));
                Request::Sample(seeds.collect::<PyResult<_>>()?)
            }
            "cache" => {
                let (_, draws) = message.extract::<(Packed<'_>, Vec<(u64, u64)>)>()?;
                let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let cache = cache.ok_or_else(|| PyRuntimeError::new_err("there is no cache"))?;
                let draws = draws.into_iter().map(|(key, count)| Draw { key, count }).collect();
                Request::Cache(cache, draws)
            }
            "draws" => Request::Draws,
            "streams" => {
                let (_, streams) = message.extract::<(Packed<'_>, Option<Vec<Packed<'_>>>)>()?;
                match streams {
                    None => Request::Streams,
                    Some(streams) => {
                        Request::SetStreams(streams.iter().map(to_stream).collect::<PyResult<_>>()?)
                    }
                }
            }
            "render" => {
                let (_, rows, mode) = message.extract::<(Packed<'_>, Vec<usize>, usize)>()?;
                Request::Render { rows: own(rows).collect(), mode }
            }
            "keep" => {
                let (_, rows, mode) = message.extract::<(Packed<'_>, _, Option<usize>)>()?;
                let what = mode.map_or(TerminalState::Parameters, TerminalState::Drawing);
                Request::Keep(own(rows).collect(), what)
            }
            other => return Err(PyValueError::new_err(format!("{other:?} is not a request"))),
        });
        Ok(())
    }

    /// A request to read a parameter of rows, or to set it to one value for each of them.
    fn parameter_request(first: usize, message: &Packed<'_>) -> PyResult<Request> {
        let (_, name, rows, values) =
            message.extract::<(Packed<'_>, String, Vec<usize>, Option<Vec<Packed<'_>>>)>()?;
        let rows = rows.into_iter().map(|row| row - first);
        let Some(values) = values else { return Ok(Request::Get(name, rows.collect())) };
        let values = values.iter().map(|value| to_value(&name, value));
        let values = rows.zip(values).map(|(row, value)| Ok((row, value?)));
        let values = values.collect::<PyResult<_>>()?;
        Ok(Request::Set(name, values))
    }

    /// Options of a reset, each text parsed once.
    fn parsed(&self, options: &GivenOptions) -> PyResult<RowOptions> {
        let parse = |text: &str| self.kind.reset_options(text).map_err(to_py_err);
        let texts = match options {
            GivenOptions::OfAll(text) => return Ok(RowOptions::OfAll(parse(text)?)),
            GivenOptions::OfEach(texts) => texts,
        };
        let mut parsed = BTreeMap::new();
        for text in texts.iter().flatten() {
            if let Entry::Vacant(entry) = parsed.entry(&**text) {
                entry.insert(parse(text)?);
            }
        }
        let of = |text: &PyBackedStr| parsed[&**text].clone();
        Ok(RowOptions::OfEach(texts.iter().map(|text| text.as_ref().map(of)).collect()))
    }
}

/// A name; bytes that are 0 where rows are not reset; seeds of all rows; their options.
type ResetMessage<'py> = (
    PyBackedStr,
    Option<PyBackedBytes>,
    Option<Vec<Option<Bound<'py, PyAny>>>>,
    Option<GivenOptions>,
);

/// A name, a row, its seed and its options.
type RowResetMessage<'py> = (PyBackedStr, usize, Option<Bound<'py, PyAny>>, Option<PyBackedStr>);

/// Options of a reset, JSON objects.
#[derive(Debug, FromPyObject)]
enum GivenOptions {
    OfAll(PyBackedStr),
    OfEach(Vec<Option<PyBackedStr>>),
}

/// A reset with a seed, a Python integer of any length that must not be negative.
fn seeded(seed: &Bound<'_, PyAny>) -> PyResult<RowReset> {
    match to_seed(seed)? {
        Seed::Number(seed) => Ok(RowReset::Seed(seed)),
        Seed::Words(words) => Ok(RowReset::WideSeed(words)),
        Seed::Unknown => Err(PyValueError::new_err(format!("seed {seed} is negative"))),
    }
}

fn is_named(message: &Packed<'_>, name: &str) -> PyResult<bool> {
    Ok(&*message.get_item(0)?.extract::<PyBackedStr>()? == name)
}
