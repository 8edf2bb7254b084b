//! Resets that load a state from a cache. The environment shows its observation as a row that is left
//! alone does; then the row is settled as one that was reset.

use std::ops::Range;
use std::sync::Arc;

use cartwheel_abi::{LEAVE, RESET, SHOW};

use super::{NativeRows, Place};
use crate::error::Error;
use crate::info::InfoWriter;
use crate::memory::{ActionColumns, Scratch};
use crate::native::cache::{CachedState, Draw, ResetCache};
use crate::native::stream::Seed;
use crate::plugin::{BatchCall, Ended};

/// A cache, and what rows do with it.
#[derive(Debug)]
pub(in crate::native) struct Caching {
    cache: Arc<ResetCache>,
    /// One for each row.
    draws: Vec<Draw>,
    /// The places of the present round whose states were loaded.
    loaded: Vec<usize>,
    /// The infos of their resets.
    infos: InfoWriter,
}

impl NativeRows {
    /// From now on every reset loads a state; `draws` has one entry for each row.
    pub(in crate::native) fn use_cache(&mut self, cache: Arc<ResetCache>, draws: Vec<Draw>) {
        let (loaded, infos) = (Vec::new(), InfoWriter::new());
        self.caching = Some(Box::new(Caching { cache, draws, loaded, infos }));
    }

    /// The draws of all rows; none without a cache.
    pub(in crate::native) fn draws(&self) -> Vec<Draw> {
        self.caching.as_ref().map(|caching| caching.draws.clone()).unwrap_or_default()
    }

    /// An explicit or chosen seed decides the row's draws, too.
    pub(super) fn seed_draw(&mut self, row: usize, seed: &Seed) {
        if let Some(caching) = &mut self.caching {
            caching.draws[row] = Draw::seeded(caching.cache.key, seed);
        }
    }

    /// Before a round: loads the states of the rows of `span` that are reset. Their streams stay as
    /// they are.
    pub(super) fn load_cached(
        &mut self,
        place: &mut Place<'_>,
        span: Range<usize>,
    ) -> Result<(), Error> {
        let Some(mut caching) = self.caching.take() else { return Ok(()) };
        let Caching { cache, draws, loaded, infos } = &mut *caching;
        loaded.clear();
        infos.clear();
        let mut done = Ok(());
        for at in span {
            if self.commands[at] != RESET {
                continue;
            }
            let row = place.rows.start + at;
            let state = cache.draw(&mut draws[row]);
            if let Err(message) = self.envs.load(row, &state.env) {
                done = self.fail(place, &ActionColumns::NONE, at, false, message);
                if done.is_err() {
                    break;
                }
                continue;
            }
            self.commands[at] = SHOW;
            loaded.push(at);
            if let Some((kind, info)) = &state.info {
                let record = infos.begin(*kind, place.first + row, 0);
                infos.append(info);
                infos.end(record);
            }
        }
        self.caching = Some(caching);
        done
    }

    /// After the round: these rows were reset, if they have not failed.
    pub(super) fn settle_cached(&mut self, place: &Place<'_>) {
        let Some(caching) = &self.caching else { return };
        for &at in &caching.loaded {
            let row = place.rows.start + at;
            if self.faults.iter().all(|fault| fault.row != place.first + row) {
                self.commands[at] = RESET;
                place.counters.count_resets(row, 1);
            }
        }
        if !caching.loaded.is_empty() {
            self.infos.add(caching.infos.stream());
        }
    }

    /// Resets rows with seeds, and returns the bytes of [`CachedState`]s. The rows have to be reset
    /// afterwards; their streams stay as they are.
    pub(in crate::native) fn sample(
        &mut self,
        seeds: Vec<(usize, Seed)>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let count = self.envs.len();
        let mut memory = Scratch::new(&self.observations, count)?;
        let (mut streams, mut commands) = (self.streams.clone(), vec![LEAVE; count]);
        let mut states = Vec::new();
        for (row, seed) in seeds {
            if let Some(stream) = seed.stream() {
                streams[row] = stream;
            }
            commands[row] = RESET;
            let (mut leaves, mut outcomes) = memory.columns(0..count);
            let mut call =
                BatchCall::without_actions(&commands, &mut leaves, &mut outcomes, &mut streams);
            self.infos.clear();
            match self.envs.run(&mut call, row..row + 1, self.infos.plugin())? {
                Ended::Done => {}
                Ended::Failed { message, .. } => return Err(Error::Failed { row, message }),
            }
            commands[row] = LEAVE;
            let state = self.save(row, seed, streams[row].clone())?;
            states.push(CachedState::write(&state, self.infos.first())?);
        }
        self.infos.clear();
        Ok(states)
    }
}
