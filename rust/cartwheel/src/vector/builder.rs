//! The builder of vector environments.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use cartwheel_core::schedule::fine_shards;
use cartwheel_engine::autoreset::{AutoresetMode, OnDone, Rules};
use cartwheel_engine::memory::{MAX_ROWS, Plan};
use cartwheel_engine::native::{NativeShard, ShardSettings};
use cartwheel_engine::plugin::EnvKind;
use cartwheel_engine::pool::{Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{Shard, ThreadPool, ThreadPoolSettings};

use super::error::VectorError;
use super::ffi;
use super::vector_env::VectorEnv;
use crate::env::Env;

/// Settings of a [`VectorEnv`]; made by [`VectorEnv::builder`].
pub struct Builder<E: Env> {
    rows: usize,
    options: E::Options,
    threads: usize,
    batch_size: Option<usize>,
    settings: ShardSettings,
    timeout: Option<Duration>,
    prints_panics: bool,
}

impl<E: Env> fmt::Debug for Builder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("env", &std::any::type_name::<E>())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<E: Env> VectorEnv<E> {
    /// Settings of `rows` environments, with defaults; [`Builder::build`] makes them.
    pub fn builder(rows: usize) -> Builder<E> {
        let settings = ShardSettings {
            autoreset: AutoresetMode::NextStep,
            on_done: OnDone::Raise,
            rules: Rules::default(),
            replacements: 0,
            dense_finals: false,
            is_checked: false,
            has_external_rewards: false,
            external_resets: None,
        };
        Builder {
            rows,
            options: E::Options::default(),
            threads: 1,
            batch_size: None,
            settings,
            timeout: None,
            prints_panics: false,
        }
    }
}

impl<E: Env> Builder<E> {
    /// Options of the environments.
    #[must_use]
    pub fn options(mut self, options: E::Options) -> Self {
        self.options = options;
        self
    }

    /// Number of threads that step rows, the calling thread included; 1 by default. Results do not
    /// depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets when rows whose episode is over begin the next one; by default in the
    /// [next step](AutoresetMode::NextStep).
    #[must_use]
    pub fn autoreset(mut self, mode: AutoresetMode) -> Self {
        self.settings.autoreset = mode;
        self
    }

    /// The effect of a step of a row whose episode is over, if rows are not reset automatically; by
    /// default it is an error.
    #[must_use]
    pub fn on_done(mut self, on_done: OnDone) -> Self {
        self.settings.on_done = on_done;
        self
    }

    /// Steps after which an episode is truncated; 0, the default, for no limit.
    #[must_use]
    pub fn max_episode_steps(mut self, steps: u32) -> Self {
        self.settings.rules.max_episode_steps = NonZero::new(steps);
        self
    }

    /// Whether an episode is over only when it is truncated: terminations are reported as false, and
    /// the environments are stepped on; false by default. Needs
    /// [`max_episode_steps`](Builder::max_episode_steps).
    #[must_use]
    pub fn ignore_terminations(mut self, ignores: bool) -> Self {
        self.settings.rules.ignore_terminations = ignores;
        self
    }

    /// Sets the number of times that each step repeats its action; 1 by default. It stops at the
    /// end of the episode. Rewards are summed, the last observation and the last info are reported,
    /// and [`max_episode_steps`](Builder::max_episode_steps) counts every repetition.
    #[must_use]
    pub fn action_repeat(mut self, times: NonZero<u32>) -> Self {
        self.settings.rules.action_repeat = times;
        self
    }

    /// Whether a reset of all rows, without numbers or a mask, lets each row begin with a number of
    /// elapsed steps, drawn from its seed, below [`max_episode_steps`](Builder::max_episode_steps);
    /// false by default. So rows are not truncated all at once.
    #[must_use]
    pub fn staggered_reset(mut self, staggers: bool) -> Self {
        self.settings.rules.staggered_reset = staggers;
        self
    }

    /// Sets the times that the environment of a row is replaced by a new one after a failure or a
    /// panic, which truncates its episode; 0 by default. Only the next failure is an error. The
    /// info of the step has the text under `env_error`.
    #[must_use]
    pub fn replacements(mut self, replacements: u32) -> Self {
        self.settings.replacements = replacements;
        self
    }

    /// Rows of a batch that [`VectorEnv::recv`] waits for; all rows by default. With fewer, rows can
    /// only be sent and received.
    #[must_use]
    pub fn batch_size(mut self, rows: usize) -> Self {
        self.batch_size = Some(rows);
        self
    }

    /// Sets the time that a call waits for other threads before it gives [`VectorError::Timeout`];
    /// forever by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether Rust prints panics of environments, as it prints others. They are always caught, and
    /// reported by [`VectorError::Faults`]; by default nothing is printed.
    #[must_use]
    pub fn print_panics(mut self, prints_panics: bool) -> Self {
        self.prints_panics = prints_panics;
        self
    }

    /// Makes the environments and starts the threads.
    ///
    /// # Errors
    ///
    /// [`VectorError::Env`] when the environment refuses its options, or its types do not fit its
    /// spaces; [`VectorError::Engine`] without rows, memory or threads, where
    /// [`batch_size`](Builder::batch_size) does not fit the rows, and where a step limit is needed and
    /// missing.
    pub fn build(self) -> Result<VectorEnv<E>, VectorError> {
        self.build_with(|options, prints_panics| ffi::kind::<E>(options, prints_panics))
    }

    /// As [`Builder::build`], with a kind that was made before.
    pub(crate) fn build_of(self, kind: &Arc<EnvKind>) -> Result<VectorEnv<E>, VectorError> {
        self.build_with(|_, _| Ok(Arc::clone(kind)))
    }

    fn build_with(
        self,
        kind: impl FnOnce(E::Options, bool) -> Result<Arc<EnvKind>, VectorError>,
    ) -> Result<VectorEnv<E>, VectorError> {
        if !(1..=MAX_ROWS).contains(&self.rows) || self.threads == 0 {
            let (rows, threads) = (self.rows, self.threads);
            return Err(VectorError::refused(format!(
                "a vector environment has 1 to {MAX_ROWS} rows and at least one thread, got {rows} \
                 rows and {threads} threads"
            )));
        }
        let rules = &self.settings.rules;
        if rules.max_episode_steps.is_none() && (rules.ignore_terminations || rules.staggered_reset)
        {
            let what = "ignored terminations and staggered resets need max_episode_steps";
            return Err(VectorError::refused(what.to_owned()));
        }
        let kind = kind(self.options, self.prints_panics)?;
        let leaves: Arc<[_]> = kind.spaces().observation.leaves().into();
        let plan = Plan {
            observations: leaves.to_vec(),
            actions: kind.spaces().action.leaves(),
            batch_size: self.batch_size.unwrap_or(self.rows),
            ..Plan::new(fine_shards(self.rows, self.threads, E::BLOCK))
        };
        let (memory, mut tokens) = Memory::new(plan.sized(None), Scope::Private)?;
        let (mut own, mut mailboxes) = (Vec::new(), Vec::new());
        for shard in &memory.plan().shards {
            let (shard, mailbox) = NativeShard::new(&kind, shard.len(), self.settings)?;
            own.push(Box::new(shard) as Box<dyn Shard>);
            mailboxes.push(mailbox);
        }
        let workers = if own.len() == 1 {
            // No other thread would have work.
            Workers::Inline(tokens.workers.remove(0), own.remove(0))
        } else {
            let thread_pool =
                ThreadPoolSettings { threads: self.threads, spin: true, affinity_offset: None };
            Workers::ThreadPool(ThreadPool::new(tokens.workers, own, thread_pool)?)
        };
        let policy = Policy {
            refuse_over: self.settings.autoreset.refuses_over(self.settings.on_done),
            refuse_unstarted: true,
            spin: true,
            ..Policy::default()
        };
        let pool = Pool::new(tokens.pool, workers, policy)?;
        Ok(VectorEnv::new(pool, mailboxes, kind, leaves, self.settings, self.timeout))
    }
}
