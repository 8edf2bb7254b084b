//! Requests about the rows of a shard: parameters, random streams, states, drawings.

use cartwheel_abi::{LEAVE, SHOW};
use cartwheel_core::Error as EnvError;
use cartwheel_core::rng::Rng;

use super::mailbox::{Answer, Request};
use super::native_rows::NativeRows;
use super::state::RowState;
use super::stream::{Seed, Stream};
use crate::error::Error;
use crate::plugin::{BatchCall, Ended};
use crate::transition::PhaseTag;

impl NativeRows {
    /// Carries out a request.
    pub(super) fn answer(&mut self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::Get(name, rows) => {
                let number = self.parameter(&name)?;
                let get = |row| {
                    let of = |message| Error::Failed { row, message };
                    self.envs.parameter(row, number).map_err(of)
                };
                let values: Result<_, _> = rows.into_iter().map(get).collect();
                values.map(Answer::Values)
            }
            Request::Set(name, values) => self.set(&name, &values).map(|()| Answer::Done),
            Request::Save(rows) => {
                let states = rows
                    .into_iter()
                    .map(|row| self.save(row, self.seeds[row].clone(), self.streams[row].clone()));
                states.collect::<Result<_, _>>().map(Answer::States)
            }
            Request::Streams => {
                let streams = self.seeds.iter().zip(&self.streams);
                let stream = |(seed, stream): (_, &Rng)| Stream {
                    seed: Clone::clone(seed),
                    at: stream.state(),
                };
                Ok(Answer::Streams(streams.map(stream).collect()))
            }
            Request::SetStreams(streams) => {
                for (row, stream) in streams.into_iter().enumerate().take(self.envs.len()) {
                    self.streams[row] = Rng::from_state(stream.at);
                    self.seeds[row] = stream.seed;
                }
                Ok(Answer::Done)
            }
            Request::Render { rows, mode } => {
                let draw = |row| {
                    let of = |message| Error::Failed { row, message };
                    self.envs.render(row, mode).map_err(of)
                };
                let frames: Result<_, _> = rows.into_iter().map(draw).collect();
                frames.map(Answer::Frames)
            }
            Request::Keep(rows, what) => {
                self.terminal.choose(rows, what, self.envs.len());
                Ok(Answer::Done)
            }
            Request::Sample(seeds) => self.sample(seeds).map(Answer::States),
            Request::Cache(cache, draws) => {
                self.use_cache(cache, draws);
                Ok(Answer::Done)
            }
            Request::Draws => Ok(Answer::Draws(self.draws())),
            Request::Fail(rows) => {
                for row in rows {
                    self.autoreset.fail(row);
                }
                Ok(Answer::Done)
            }
            Request::Begin(begun) => self.begin_written(begun),
            Request::Nothing => Ok(Answer::Done),
        }
    }

    /// The state of a row, as bytes, with a seed and a random stream.
    pub(super) fn save(&mut self, row: usize, seed: Seed, stream: Rng) -> Result<Vec<u8>, Error> {
        let kind = std::sync::Arc::clone(self.envs.kind());
        let env = self.envs.save(row);
        let env = env.map_err(|what| Error::BadState(format!("{}: {what}", kind.table().id())))?;
        RowState { row: self.autoreset.save(row), seed, stream, env }.write(&kind)
    }

    fn set(&mut self, name: &str, values: &[(usize, Vec<u8>)]) -> Result<(), Error> {
        let number = self.parameter(name)?;
        self.keep_shown(values.iter().map(|(row, _)| *row))?;
        let (mut rows, mut first) = (Vec::new(), None);
        for (row, value) in values {
            if let Err(reason) = self.envs.set_parameter(*row, number, value) {
                rows.push(*row);
                first = first.or(Some(reason));
            }
        }
        let name = name.to_owned();
        first.map_or(Ok(()), |reason| Err(Error::BadValues { name, rows, reason }))
    }

    /// The number of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Result<usize, Error> {
        let names = self.envs.kind().parameters();
        names.iter().position(|known| known == name).ok_or_else(|| {
            let names = names.join(", ");
            let what = format!("there is no parameter {name:?}; there are: {names}");
            EnvError::BadParameter(what).into()
        })
    }

    /// Keeps the observations that these rows show, because their parameters are about to be set.
    fn keep_shown(&mut self, rows: impl Iterator<Item = usize>) -> Result<(), Error> {
        let count = self.envs.len();
        let Self { envs, autoreset, shown, streams, infos, observations, .. } = self;
        let (memory, kept) = shown.room(observations, count)?;
        let (mut leaves, mut outcomes) = memory.columns(0..count);
        let mut commands = vec![LEAVE; count];
        for row in rows.filter(|&row| !kept[row] && autoreset.phase(row) != PhaseTag::Unstarted) {
            commands[row] = SHOW;
        }
        let mut call = BatchCall::without_actions(&commands, &mut leaves, &mut outcomes, streams);
        infos.clear();
        for (kept, &command) in kept.iter_mut().zip(&commands) {
            *kept |= command == SHOW;
        }
        let mut next = 0;
        while next < count {
            match envs.run(&mut call, next..count, infos.plugin())? {
                Ended::Done => break,
                Ended::Failed { row, .. } => {
                    kept[row] = false; // it shows what it can when it is asked
                    next = row + 1;
                }
            }
        }
        infos.clear();
        Ok(())
    }
}
