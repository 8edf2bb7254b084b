//! Snapshots of rows: the environment, its random numbers and its place in the episode.

use std::sync::{Arc, Mutex, PoisonError};

use super::mailbox::Snapshot;
use super::rows::{EnvColumns, NativeRows};
use super::stream::Seed;
use crate::autoreset::{Autoreset, SavedRow};
use crate::env::Env;
use crate::error::Error;
use cartwheel_core::rng::Rng;

/// The content of a [`Snapshot`] of an `E`.
struct Saved<E> {
    env: E,
    rng: Rng,
    seed: Seed,
    row: SavedRow,
}

/// A snapshot of row `row`.
pub(super) fn save<E: Env>(
    columns: &EnvColumns<E>,
    autoreset: &Autoreset,
    row: usize,
) -> Result<Snapshot, Error> {
    let env = columns.envs[row].snapshot();
    let env = env.ok_or_else(|| Error::bad_options("this environment has no snapshots"))?;
    let (rng, seed) = (columns.rngs[row].clone(), columns.seeds[row].clone());
    let saved = Saved { env, rng, seed, row: autoreset.save(row) };
    Ok(Snapshot(Arc::new(Mutex::new(saved))))
}

/// Restores row `row` from a snapshot.
pub(super) fn restore<E: Env>(
    autoreset: &mut Autoreset,
    rows: &mut NativeRows<'_, E>,
    row: usize,
    snapshot: &Snapshot,
) -> Result<(), Error> {
    let other = || Error::bad_options("a snapshot of another kind of environment");
    // Environments need not be `Sync`: the lock makes a snapshot shareable.
    let saved = snapshot.0.downcast_ref::<Mutex<Saved<E>>>().ok_or_else(other)?;
    let saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
    rows.env_columns.envs[row] = saved.env.snapshot().ok_or_else(other)?;
    rows.env_columns.rngs[row] = saved.rng.clone();
    rows.env_columns.seeds[row] = saved.seed.clone();
    autoreset.restore(row, saved.row);
    rows.repeat(row);
    Ok(())
}
