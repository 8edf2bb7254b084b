//! Requests to rows besides steps and resets: parameters, states, drawings.

use cartwheel_core::info::{InfoReader, InfoWriter};
use cartwheel_engine::native::{Answer, Request, RowReset, RowState};
use cartwheel_engine::plugin::RenderFrame;
use cartwheel_engine::{Call, Error as EngineError};

use super::batch::Batch;
use super::error::VectorError;
use super::reset::check_rows;
use super::vector_env::VectorEnv;
use crate::Error;
use crate::env::{Env, Parameter, ParameterValue, RenderMode};

/// A drawing of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drawing {
    /// Pixels, of [`RenderMode::RgbArray`].
    Pixels {
        /// Rows of pixels.
        height: usize,
        /// Pixels in a row.
        width: usize,
        /// Red, green and blue of each pixel, row by row from the top.
        bytes: Vec<u8>,
    },
    /// Text, of [`RenderMode::Ansi`].
    Text(String),
}

impl<E: Env> VectorEnv<E> {
    /// The parameter of this name in every row.
    ///
    /// # Errors
    ///
    /// [`VectorError::Env`] when there is no such parameter, or when it is not a `T`;
    /// [`VectorError::Engine`], which names the row, when an environment does not tell it.
    pub fn parameter<T: Parameter + Default>(&mut self, name: &str) -> Result<Vec<T>, VectorError> {
        let mut all = Vec::new();
        let shards = self.pool.shards().to_vec();
        let of = |shard: usize| Request::Get(name.to_owned(), (0..shards[shard].len()).collect());
        for answer in self.ask(of)? {
            let Answer::Values(values) = answer else { continue };
            for value in values {
                let mut typed = T::default();
                let value = ParameterValue::read(&mut InfoReader::new(&value, 0))?;
                typed.set(value).map_err(|error| named(name, &error))?;
                all.push(typed);
            }
        }
        Ok(all)
    }

    /// Sets the parameter of this name, in every row: one value for each, or one for all.
    ///
    /// # Errors
    ///
    /// [`VectorError::Env`] when there is no such parameter; [`VectorError::Engine`] when there is
    /// another number of values, or when rows refuse theirs: then the others have theirs.
    pub fn set_parameter<T: Parameter>(
        &mut self,
        name: &str,
        values: &[T],
    ) -> Result<(), VectorError> {
        let rows = self.len();
        if values.len() != rows && values.len() != 1 {
            return Err(VectorError::refused(format!(
                "{} values of {name:?} for {rows} rows",
                values.len()
            )));
        }
        let write = |value: &T| {
            let mut writer = InfoWriter::new();
            value.get().write(&mut writer);
            writer.stream().to_vec()
        };
        let all: Vec<Vec<u8>> = values.iter().map(write).cycle().take(rows).collect();
        let shards = self.pool.shards().to_vec();
        let of = |shard: usize| all[shards[shard].clone()].iter().cloned().enumerate().collect();
        self.ask(|shard| Request::Set(name.to_owned(), of(shard)))?;
        Ok(())
    }

    /// The states of rows: everything that their next steps, resets, observations and infos depend
    /// on, random streams included. They outlive the process; bytes that were cut or changed are
    /// found.
    ///
    /// # Errors
    ///
    /// [`VectorError::Engine`] when rows do not exist, or the environment does not save its state.
    pub fn get_state(&mut self, rows: &[usize]) -> Result<Vec<Vec<u8>>, VectorError> {
        check_rows(rows, self.len())?;
        let shards = self.pool.shards().to_vec();
        let of = |shard: usize| {
            let own = rows.iter().filter(|row| shards[shard].contains(row));
            own.map(|row| row - shards[shard].start).collect::<Vec<_>>()
        };
        let mut states = vec![Vec::new(); rows.len()];
        for (shard, answer) in self.ask(|shard| Request::Save(of(shard)))?.into_iter().enumerate() {
            let Answer::States(saved) = answer else { continue };
            let places = (0..rows.len()).filter(|&at| shards[shard].contains(&rows[at]));
            for (at, state) in places.zip(saved) {
                states[at] = state;
            }
        }
        Ok(states)
    }

    /// Continues rows from states that [`VectorEnv::get_state`] gave, of any row of environments of
    /// the same type and options. The batch shows their observations.
    ///
    /// # Errors
    ///
    /// [`VectorError::Engine`] when rows do not exist, or a state is none or of other environments:
    /// then nothing was changed.
    pub fn set_state(
        &mut self,
        rows: &[usize],
        states: &[impl AsRef<[u8]>],
    ) -> Result<Batch<E>, VectorError> {
        check_rows(rows, self.len())?;
        if rows.len() != states.len() {
            let (states, rows) = (states.len(), rows.len());
            return Err(VectorError::refused(format!("{states} states for {rows} rows")));
        }
        let mut how = vec![RowReset::Leave; self.len()];
        for (&row, state) in rows.iter().zip(states) {
            let state = RowState::read(&self.kind, state.as_ref())?;
            how[row] = RowReset::Restore(Box::new(state));
        }
        self.reset_all(how, None, 0)
    }

    /// Draws a row.
    ///
    /// # Errors
    ///
    /// [`VectorError::Engine`] when there is no such row, when the environment has no such mode (see
    /// [`Env::RENDER`]), or when it fails.
    pub fn render(&mut self, row: usize, mode: RenderMode) -> Result<Drawing, VectorError> {
        check_rows(&[row], self.len())?;
        let number = E::RENDER.iter().position(|own| *own == mode).ok_or_else(|| {
            VectorError::refused(format!("there is no mode {mode:?}; there are: {:?}", E::RENDER))
        })?;
        let (shard, shards) = (self.pool.shard_of(row), self.pool.shards().to_vec());
        let request = |at: usize| {
            if at == shard {
                Request::Render { rows: vec![row - shards[shard].start], mode: number }
            } else {
                Request::Nothing
            }
        };
        let drawn = match self.ask(request)?.swap_remove(shard) {
            Answer::Frames(mut frames) => frames.pop(),
            _ => None,
        };
        match drawn {
            Some(RenderFrame::Pixels { height, width, bytes }) => {
                Ok(Drawing::Pixels { height, width, bytes })
            }
            Some(RenderFrame::Text(text)) => Ok(Drawing::Text(text)),
            None => Err(VectorError::refused("the row gave no drawing".to_owned())),
        }
    }

    /// Asks every shard, and returns their answers in order.
    fn ask(&mut self, request: impl Fn(usize) -> Request) -> Result<Vec<Answer>, VectorError> {
        self.check(Call::Call)?;
        for (shard, mailbox) in self.mailboxes.iter().enumerate() {
            mailbox.post_request(request(shard));
        }
        self.pool.begin(Call::Call, 0)?;
        self.pool.finish(Call::Call, None, &mut || false)?;
        let answers: Vec<_> = self.mailboxes.iter().map(|mailbox| mailbox.take_answer()).collect();
        // The first error, with the rows of all shards that refuse a value.
        let (mut given, mut refused) = (Vec::new(), None);
        for (answer, rows) in answers.into_iter().zip(self.pool.shards()) {
            let answer = answer.expect("a shard answers every request");
            match (answer.map_err(|error| error.of_shard(rows.start)), &mut refused) {
                (Ok(answer), _) => given.push(answer),
                (Err(error), None) => refused = Some(error),
                (
                    Err(EngineError::BadValues { rows: more, .. }),
                    Some(EngineError::BadValues { rows, .. }),
                ) => rows.extend(more),
                (Err(_), Some(_)) => {}
            }
        }
        refused.map_or(Ok(given), |error| Err(error.into()))
    }
}

/// The error of a parameter, with its name.
fn named(name: &str, error: &Error) -> Error {
    Error::BadParameter(format!("parameter {name:?} {error}"))
}
