//! Many environments of one type, stepped together.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use cartwheel_core::Leaf;
use cartwheel_core::space::{Space, Spaces};
use cartwheel_engine::Call;
use cartwheel_engine::memory::Lease;
use cartwheel_engine::native::{Mailbox, RowReset, ShardSettings};
use cartwheel_engine::plugin::{EnvKind, ResetOptions};
use cartwheel_engine::pool::Pool;

use super::batch::Batch;
use super::error::{Fault, VectorError};
use super::ffi::{self, BatchMemory};
use super::reset::Reset;
use crate::env::{Env, View};

/// Time that a drop waits for environments that are being stepped.
const GRACE: Duration = Duration::from_secs(5);

/// Many environments of type `E`, stepped together.
///
/// Row `i` is the environment number `i`. What it does depends on its seed and its actions only: not
/// on other rows, nor on the number of threads. The crate's first page has an example.
///
/// Every call that steps or resets gives a [`Batch`] or a [`VectorError`]. An environment that fails
/// or panics fails its row: the call is an error that names the row and has the text; the other rows
/// go on, see [`VectorEnv::take_rest`].
pub struct VectorEnv<E: Env> {
    pub(super) pool: Pool,
    pub(super) mailboxes: Vec<Arc<Mailbox>>,
    pub(super) kind: Arc<EnvKind>,
    pub(super) leaves: Arc<[Leaf]>,
    pub(super) settings: ShardSettings,
    pub(super) timeout: Option<Duration>,
    /// All rows, for batches that have them all.
    pub(super) all: Arc<[usize]>,
    space: Arc<Space>,
    rest: Option<Batch<E>>,
    env: PhantomData<fn() -> E>,
}

impl<E: Env> fmt::Debug for VectorEnv<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorEnv")
            .field("env", &std::any::type_name::<E>())
            .field("rows", &self.len())
            .field("options", &self.kind.options())
            .finish_non_exhaustive()
    }
}

impl<E: Env> VectorEnv<E> {
    pub(super) fn new(
        pool: Pool,
        mailboxes: Vec<Arc<Mailbox>>,
        kind: Arc<EnvKind>,
        leaves: Arc<[Leaf]>,
        settings: ShardSettings,
        timeout: Option<Duration>,
    ) -> Self {
        let rows = pool.shards().last().map_or(0, |shard| shard.end);
        let space = Arc::new(kind.spaces().observation.clone());
        let (all, rest, env) = ((0..rows).collect(), None, PhantomData);
        Self { pool, mailboxes, kind, leaves, settings, timeout, all, space, rest, env }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no row; never true.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The spaces of one row.
    pub fn spaces(&self) -> &Spaces {
        self.kind.spaces()
    }

    /// Resets all rows, or those that `reset` names: `reset(Seed(7))`, `reset(Reset::new())`.
    ///
    /// In the batch, rows that are left alone show their observation again.
    ///
    /// # Errors
    ///
    /// [`VectorError`]; for rows that do not exist, nothing was reset.
    pub fn reset(
        &mut self,
        reset: impl Into<Reset<E::ResetOptions>>,
    ) -> Result<Batch<E>, VectorError> {
        let reset = reset.into();
        let (plan, flags) = (reset.plan(self.len())?, reset.flags());
        let options = reset.options.map(|options| ffi::reset_options::<E>(&self.kind, options));
        let mut how = vec![RowReset::Leave; self.len()];
        for (row, reset) in plan {
            how[row] = reset;
        }
        self.reset_all(how, options, flags)
    }

    /// Does to every row what `how` says, in a task with these flags.
    pub(super) fn reset_all(
        &mut self,
        how: Vec<RowReset>,
        options: Option<ResetOptions>,
        flags: u32,
    ) -> Result<Batch<E>, VectorError> {
        self.check(Call::Reset)?;
        let mut how = how.into_iter();
        for (shard, mailbox) in self.pool.shards().iter().zip(&self.mailboxes) {
            let rows = how.by_ref().take(shard.len()).collect();
            mailbox.post_reset(rows, options.clone().into());
        }
        self.pool.begin(Call::Reset, flags)?;
        self.wait()
    }

    /// Steps all rows, each with its action: the owned type of [`Env::Action`], see [`View`].
    ///
    /// # Errors
    ///
    /// [`VectorError::Env`] when an action is not in its space: then nothing was stepped.
    /// [`VectorError::Faults`], [`VectorError::Timeout`]. [`VectorError::Engine`] when there is not
    /// an action for each row, when rows were never reset, failed before and were not reset since, or
    /// are over and not reset automatically, or when rows are in flight.
    pub fn step(
        &mut self,
        actions: &[<E::Action as View>::Owned],
    ) -> Result<Batch<E>, VectorError> {
        let rows = self.len();
        if actions.len() != rows {
            return Err(VectorError::refused(format!("{} actions for {rows} rows", actions.len())));
        }
        self.check(Call::Step)?;
        self.send_steps(None, actions)?;
        self.wait()
    }

    /// Waits for a step or a reset that did not finish in time: after [`VectorError::Timeout`] it
    /// goes on, and nothing is lost.
    ///
    /// # Errors
    ///
    /// As the call that began; [`VectorError::Engine`] when no call is pending.
    ///
    /// # Panics
    ///
    /// Never: a step or a reset that finished has a batch.
    pub fn wait(&mut self) -> Result<Batch<E>, VectorError> {
        let call = self.pool.pending().unwrap_or(Call::Step);
        let finished = self.pool.finish(call, self.timeout, &mut || false)?;
        self.batch_of(finished)
    }

    /// The batch of the last call that was [`VectorError::Faults`], for the rows that did not fail.
    /// The rows that failed show zeros, or an observation from before.
    pub fn take_rest(&mut self) -> Option<Batch<E>> {
        self.rest.take()
    }

    /// Checks whether a call of all rows can begin.
    pub(super) fn check(&self, call: Call) -> Result<(), VectorError> {
        let (size, rows) = (self.pool.batch_size(), self.len());
        if size < rows && call != Call::Call {
            return Err(VectorError::refused(format!(
                "batches have {size} of {rows} rows: use `send` and `recv` instead of `{call}`"
            )));
        }
        Ok(self.pool.check(call)?)
    }

    /// The batch of `lease`, whose places have these rows.
    pub(super) fn finish(
        &mut self,
        lease: Lease,
        rows: Arc<[usize]>,
        infos: Vec<u8>,
        faults: Vec<cartwheel_engine::native::Fault>,
    ) -> Result<Batch<E>, VectorError> {
        let memory = BatchMemory::new(lease, &self.leaves, rows.len());
        let batch = Batch::new(memory, rows, infos, &self.space);
        self.rest = None;
        if faults.is_empty() {
            return Ok(batch);
        }
        self.rest = Some(batch);
        let mut faults: Vec<Fault> = faults.into_iter().map(Fault::from).collect();
        faults.sort_by_key(|fault| fault.row);
        Err(VectorError::Faults(faults))
    }
}

impl<E: Env> Drop for VectorEnv<E> {
    /// Ends the threads and the environments. An environment that is being stepped gets five seconds;
    /// after that, its thread goes on until the step returns.
    fn drop(&mut self) {
        self.pool.close(GRACE);
    }
}
