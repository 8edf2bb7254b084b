//! Initial states that resets load instead of the environments' own resets.
//!
//! ```text
//! cached := state length u32, state (see `RowState`), kind u8, info, sum u64
//! ```
//!
//! The kind is that of the record of the reset's info plus one, or 0 for a reset without an info;
//! the info is what the record holds. The sum is that of states.

use super::state::{RowState, hash, push};
use super::stream::Seed;
use crate::autoreset::mixed;
use crate::error::Error;
use crate::info::RecordKind;
use crate::plugin::EnvKind;

/// Initial states of one kind of environment, for any number of shards.
#[derive(Debug)]
pub struct ResetCache {
    /// Part of every draw that a seed decides.
    pub(super) key: u64,
    pub(super) states: Vec<CachedState>,
}

impl ResetCache {
    /// A cache of these states; [`Draw`]s that seeds decide depend on `key` as well.
    ///
    /// # Errors
    ///
    /// [`Error::BadState`] for no states at all, and for bytes that are not a state of this kind.
    pub fn new<'a>(
        kind: &EnvKind,
        key: u64,
        states: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Error> {
        let states = states.into_iter().map(|state| CachedState::read(kind, state));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        if states.is_empty() {
            return Err(Error::BadState("a cache needs at least one state".to_owned()));
        }
        Ok(Self { key, states })
    }

    /// The state that a draw chooses.
    pub(super) fn draw(&self, draw: &mut Draw) -> &CachedState {
        &self.states[draw.next(self.states.len())]
    }
}

/// The state of a row after its reset, and the info of the reset.
#[derive(Debug)]
pub(super) struct CachedState {
    pub(super) env: Vec<u8>,
    pub(super) info: Option<(RecordKind, Vec<u8>)>,
}

impl CachedState {
    /// The bytes of a state and of the info of its reset.
    ///
    /// # Errors
    ///
    /// As of [`RowState::write`].
    pub(super) fn write(state: &[u8], info: Option<(RecordKind, &[u8])>) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        push(&mut bytes, state)?;
        match info {
            None => bytes.push(0),
            Some((record, info)) => {
                bytes.push(record as u8 + 1);
                bytes.extend_from_slice(info);
            }
        }
        bytes.extend(hash(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// The state from bytes that [`super::Answer::States`] holds after [`super::Request::Sample`].
    ///
    /// # Errors
    ///
    /// [`Error::BadState`] as for [`RowState::read`].
    fn read(kind: &EnvKind, bytes: &[u8]) -> Result<Self, Error> {
        let bad =
            || Error::BadState("this is not a cached state, or it was cut or changed".to_owned());
        let whole = |end: &usize| bytes[*end..] == hash(&bytes[..*end]).to_le_bytes();
        let end = bytes.len().checked_sub(8).filter(whole).ok_or_else(bad)?;
        let (length, rest) = bytes[..end].split_at_checked(4).ok_or_else(bad)?;
        let length = u32::from_le_bytes(length.try_into().map_err(|_| bad())?) as usize;
        let (state, rest) = rest.split_at_checked(length).ok_or_else(bad)?;
        let (record, info) = rest.split_first().ok_or_else(bad)?;
        let kinds = [
            None,
            Some(RecordKind::Info),
            Some(RecordKind::Whole),
            None,
            Some(RecordKind::Irregular),
        ];
        let record = kinds.get(usize::from(*record)).ok_or_else(bad)?;
        let info = record.map(|record| (record, info.to_vec()));
        Ok(Self { env: RowState::read(kind, state)?.env, info })
    }
}

/// The state that a row gets with its next reset: two numbers, the second of which counts resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Decides all draws.
    pub key: u64,
    /// The number of draws so far.
    pub count: u64,
}

impl Draw {
    /// The draws of a row after a reset with a seed, from a cache with this key.
    pub fn seeded(key: u64, seed: &Seed) -> Self {
        Self { key: mixed([key, seed.mixed().unwrap_or_default()]), count: 0 }
    }

    /// One of `states` numbers from 0 on.
    #[expect(clippy::cast_possible_truncation, reason = "what is scaled is below the number")]
    pub fn next(&mut self, states: usize) -> usize {
        let drawn = u128::from(mixed([self.key, self.count]));
        self.count = self.count.wrapping_add(1);
        ((drawn * states as u128) >> u64::BITS) as usize
    }
}
