//! A broken pool: it can only be closed, and every other call says why.

use super::Pool;
use crate::error::Error;
use crate::memory::{InfosAt, Lease};

/// Reason why a pool is broken.
#[derive(Debug)]
pub(super) enum Cause {
    /// A worker died, and no other one replaces it.
    Died(usize),
    /// One of these workers wrote something that only a corrupt worker writes.
    Corrupt { workers: Vec<usize>, wrote: String },
}

/// The remains of a broken pool.
#[derive(Debug)]
pub(super) struct Broken {
    cause: Cause,
    /// The batch that was being filled: kept, so that it is never filled again.
    _lease: Option<Lease>,
}

impl Pool {
    /// Whether the pool is neither closed nor broken.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], or what broke the pool: [`Error::WorkerDied`] or [`Error::Corrupt`].
    pub(super) fn check_usable(&self) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        match &self.broken {
            None => Ok(()),
            Some(Broken { cause: Cause::Died(worker), .. }) => Err(self.died(*worker)),
            Some(Broken { cause: Cause::Corrupt { workers, wrote }, .. }) => {
                Err(Error::Corrupt { workers: workers.clone(), wrote: wrote.clone() })
            }
        }
    }

    /// Breaks the pool. Workers that died are not replaced, and the batch that was being filled,
    /// `lease` or that of the pending call, is never handed out.
    pub(super) fn break_for(&mut self, cause: Cause, lease: Option<Lease>) {
        self.interrupted.clear();
        let lease = lease.or_else(|| self.pending.take().and_then(|pending| pending.lease));
        self.broken = Some(Broken { cause, _lease: lease });
    }

    /// Breaks the pool because a place of the batch of `lease` names a row that is not in flight;
    /// returns the error.
    #[cold]
    pub(super) fn break_for_row(&mut self, row: usize, place: usize, lease: Lease) -> Error {
        let wrote = format!("row {row} to place {place} of a batch, expected a row in flight");
        // The row that belongs there is missing, so it belongs to a worker that still owes rows.
        self.corrupt(self.owing_rows(), wrote, lease)
    }

    /// Breaks the pool because of the [overlong infos](Pool::overlong_infos) of a row; returns the
    /// error.
    #[cold]
    pub(super) fn break_for_infos(&mut self, row: usize, bytes: u32, lease: Lease) -> Error {
        let wrote = format!("{bytes} bytes of infos for row {row}, expected what fits its part");
        self.corrupt(vec![self.shard_of(row)], wrote, lease)
    }

    /// Breaks the pool because of what one of `workers` wrote about the batch of `lease`; returns
    /// the error.
    fn corrupt(&mut self, workers: Vec<usize>, wrote: String, lease: Lease) -> Error {
        let error = Error::Corrupt { workers: workers.clone(), wrote: wrote.clone() };
        self.break_for(Cause::Corrupt { workers, wrote }, Some(lease));
        error
    }

    /// The first row whose infos extend into the cell of a row that was not received together with
    /// it, and the number of their bytes. `rows` are the rows of a batch, `infos` what its places
    /// announce.
    pub(super) fn overlong_infos(
        &self,
        rows: &[usize],
        infos: &[(usize, InfosAt)],
    ) -> Option<(usize, u32)> {
        infos.iter().find_map(|&(place, infos_at)| {
            let InfosAt::Memory(bytes) = infos_at else { return None };
            let (row, shard) = (rows[place], self.shard_of(rows[place]));
            let reach = self.memory.infos.rows_of(shard, row, bytes as usize);
            let came = rows[place..].iter().copied().take(reach.len());
            let fits = self.memory.infos.fit(shard, &reach, bytes as usize);
            (!fits || !came.eq(reach)).then_some((row, bytes))
        })
    }
}
