//! The rows of a shard: plans what each does, makes one call for all of them, settles.

mod caching;
mod external_resets;
mod external_rewards;
mod next_reset;
mod repeats;
mod round;
mod terminal;
mod unused;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use cartwheel_abi::{LEAVE, RESET, SHOW, STEP};
use cartwheel_core::rng::Rng;

use self::caching::Caching;
use super::infos::{Finals, RowInfos};
use super::mailbox::{Fault, Mailbox, RowReset};
use super::settings::ShardSettings;
use super::shown::Shown;
use super::stream::{Seed, of_stream, unforeseen};
use crate::autoreset::{Autoreset, AutoresetMode, Outcomes, Refusal, restarted};
use crate::error::Error;
use crate::info::InfoWriter;
use crate::memory::{ActionColumns, ActionRows, Addresses, LeafColumns};
use crate::plugin::{EnvKind, EnvRows, ResetOptions};
use crate::protocol::Counters;
use crate::space::Leaf;
use crate::transition::PhaseTag;
use repeats::Repeats;
use terminal::Terminal;
use unused::Unused;

/// The environments of a shard, in columns.
#[derive(Debug)]
pub(super) struct NativeRows {
    pub(super) envs: EnvRows,
    pub(super) autoreset: Autoreset,
    /// Whether rows that end their episode are reset in the same step.
    restarts: bool,
    /// Whether batches have final observations.
    pub(super) dense_finals: bool,
    /// Of which rows terminal states are kept.
    pub(super) terminal: Terminal,
    pub(super) streams: Vec<Rng>,
    /// The seeds of the random streams.
    pub(super) seeds: Vec<Seed>,
    pub(super) shown: Shown,
    pub(super) infos: RowInfos,
    /// Where resets load states, if not from the environments.
    caching: Option<Box<Caching>>,
    /// Seeds and options that the owner of the pool has left for automatic resets.
    mailbox: Arc<Mailbox>,
    /// The faults of the present task.
    pub(super) faults: Vec<Fault>,
    /// The leaves of the spaces.
    pub(super) observations: Vec<Leaf>,
    actions: Vec<Leaf>,
    addresses: Addresses,
    /// The command of each row in the present round.
    commands: Vec<u8>,
    /// The command of each row in the second round.
    resets: Vec<u8>,
    /// The rows that the second round resets, counted from the first row of the task.
    ended: Vec<usize>,
    /// Reports of rows in the second round; their rewards and flags are those of the first.
    unused: Option<Unused>,
    /// The same, between two second rounds.
    spare: Option<Unused>,
    /// The rows whose environments were replaced in this round, and why.
    replaced: Vec<(usize, String)>,
    /// Replacements of each row's environment; empty before the first one.
    replacements: Vec<u32>,
    max_replacements: u32,
    /// Of steps that repeat their action.
    repeats: Repeats,
    /// Whether the owner completes resets, and the parameter by which it knows a row.
    external_resets: Option<usize>,
    /// The rows that began an episode and were not reported yet; none unless the owner completes resets.
    begun: Vec<usize>,
    /// Whether steps have two halves.
    has_external_rewards: bool,
    /// The command of each row in the first half of a step, until the second one; else empty.
    unsettled: Vec<u8>,
}

/// The rows of a task, and where they are written.
pub(super) struct Place<'a> {
    /// The first row of the shard, counted from the first row of the pool.
    pub(super) first: usize,
    /// The rows of the task, counted from the first row of the shard.
    pub(super) rows: Range<usize>,
    pub(super) actions: &'a ActionRows<'a>,
    pub(super) leaves: LeafColumns<'a>,
    pub(super) outcomes: Outcomes<'a>,
    pub(super) counters: Counters<'a>,
}

impl Place<'_> {
    /// The number that infos and faults have for the first row.
    fn number(&self) -> usize {
        self.first + self.rows.start
    }
}

impl NativeRows {
    /// Makes `rows` environments, each with an unpredictable stream.
    pub(super) fn new(
        kind: &Arc<EnvKind>,
        rows: usize,
        settings: ShardSettings,
        mailbox: Arc<Mailbox>,
    ) -> Result<Self, Error> {
        let (streams, seeds) = unforeseen(rows)?;
        let autoreset = Autoreset::unstarted(settings.autoreset, settings.on_done, rows);
        Ok(Self {
            envs: EnvRows::new(kind, rows, settings.is_checked)?,
            autoreset: autoreset.with_rules(settings.rules),
            restarts: settings.autoreset == AutoresetMode::SameStep,
            dense_finals: settings.dense_finals,
            terminal: Terminal::default(),
            streams,
            seeds,
            shown: Shown::default(),
            infos: RowInfos::new(),
            caching: None,
            mailbox,
            faults: Vec::new(),
            observations: kind.spaces().observation.leaves(),
            actions: kind.spaces().action.leaves(),
            addresses: Addresses::default(),
            commands: vec![LEAVE; rows],
            resets: vec![LEAVE; rows],
            ended: Vec::with_capacity(rows),
            unused: None,
            spare: None,
            replaced: Vec::new(),
            replacements: Vec::new(),
            max_replacements: settings.replacements,
            repeats: Repeats::default(),
            external_resets: settings.external_resets,
            begun: Vec::new(),
            has_external_rewards: settings.has_external_rewards,
            unsettled: Vec::new(),
        })
    }

    /// One step of the rows, with the resets that the mode requires.
    ///
    /// # Errors
    ///
    /// [`Error::Plugin`], after which the rows are in no known state.
    pub(super) fn step(&mut self, place: &mut Place<'_>) -> Result<(), Error> {
        let (rows, count) = (place.rows.clone(), place.rows.len());
        debug_assert_eq!(place.leaves.has_finals(), self.dense_finals, "the pool's batches");
        self.begin();
        self.abandon();
        self.autoreset.plan(rows.clone(), &mut self.commands[..count]);
        let mut room = std::mem::take(&mut self.addresses);
        let floats = self.envs.kind().action_floats();
        let columns = place.actions.columns(&self.actions, floats, &mut room);
        let actions = match columns {
            Ok(actions) => {
                let commands = self.commands[..count].iter();
                if commands.fold(STEP, |highest, &command| highest.max(command)) > RESET {
                    for (row, refusal) in self.autoreset.refusals(rows.clone()) {
                        let row = place.first + row;
                        self.faults.push(Fault { row, error: refused(refusal, row) });
                    }
                    self.present(place);
                }
                actions
            }
            Err(error) => {
                self.commands[..count].fill(SHOW);
                let fault = |row| Fault { row, error: error.again() };
                self.faults.extend((place.number()..place.number() + count).map(fault));
                self.present(place);
                ActionColumns::NONE
            }
        };
        self.forget_shown(&rows);
        let next = self.take_next_resets(place, 0..count);
        let own = |row: usize| next.as_ref().and_then(|next| next.get(&row));
        let options = next.is_some().then_some(&own as &dyn Fn(usize) -> Option<_>);
        let loaded = self.load_cached(place, 0..count);
        let carried_out = loaded.and_then(|()| {
            if self.autoreset.rules().action_repeat.get() > 1 {
                self.repeat(place, &actions, options)
            } else {
                self.round(place, 0..count, &actions, options)
            }
        });
        self.addresses = room;
        carried_out?;
        self.settle_cached(place);
        if self.has_external_rewards {
            return self.await_rewards(place);
        }
        self.settle_step(place)
    }

    /// Settles rows whose commands were carried out in a step, and restarts those that are over.
    fn settle_step(&mut self, place: &mut Place<'_>) -> Result<(), Error> {
        let commands = &self.commands[..place.rows.len()];
        self.autoreset.settle(place.rows.clone(), commands, &mut place.outcomes);
        place.leaves.keep_finals();
        if self.restarts { self.restart(place) } else { Ok(()) }
    }

    /// Resets the rows for which `how` says so, with `options`, and shows the others. `is_full`: it
    /// is a [full reset](crate::FULL_RESET).
    ///
    /// # Errors
    ///
    /// As [`NativeRows::step`].
    pub(super) fn reset<'o>(
        &mut self,
        place: &mut Place<'_>,
        how: impl Fn(usize) -> RowReset,
        options: &dyn Fn(usize) -> Option<&'o ResetOptions>,
        is_full: bool,
    ) -> Result<(), Error> {
        let (rows, count) = (place.rows.clone(), place.rows.len());
        self.begin();
        self.abandon();
        for (at, row) in rows.clone().enumerate() {
            let how = how(row);
            if !matches!(how, RowReset::Leave) && self.mailbox.has_next_resets() {
                self.mailbox.take_next_reset(place.first + row); // for automatic resets only
            }
            self.commands[at] = match how {
                RowReset::Leave => SHOW,
                RowReset::Restore(state) => {
                    if let Err(what) = self.envs.load(row, &state.env) {
                        let error = Error::BadState(what);
                        self.faults.push(Fault { row: place.first + row, error });
                    } else {
                        self.autoreset.restore(row, state.row);
                        let state = *state;
                        (self.streams[row], self.seeds[row]) = (state.stream, state.seed);
                        self.shown.forget(row);
                    }
                    SHOW
                }
                RowReset::Seed(seed) => {
                    self.seed(row, Seed::Number(seed));
                    RESET
                }
                RowReset::WideSeed(words) => {
                    self.seed(row, Seed::Words(words));
                    RESET
                }
                RowReset::Continue => RESET,
            };
        }
        self.present(place);
        self.forget_shown(&rows);
        self.load_cached(place, 0..count)?;
        self.round(place, 0..count, &ActionColumns::NONE, Some(options))?;
        self.settle_cached(place);
        place.leaves.keep_finals();
        let commands = &self.commands[..count];
        self.autoreset.settle(rows.clone(), commands, &mut place.outcomes);
        if is_full && self.autoreset.rules().staggered_reset {
            for (row, _) in rows.zip(commands).filter(|(_, command)| **command == RESET) {
                let draw = self.seeds[row].mixed().unwrap_or_else(|| of_stream(&self.streams[row]));
                self.autoreset.stagger(row, draw);
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.infos.clear();
        self.replaced.clear();
    }

    /// Decides how rows that neither step nor reset are shown, and shows those for which the plugin
    /// is not needed.
    fn present(&mut self, place: &mut Place<'_>) {
        for (at, row) in place.rows.clone().enumerate() {
            if self.commands[at] <= RESET {
                continue;
            }
            self.commands[at] = if self.autoreset.phase(row) == PhaseTag::Unstarted {
                place.leaves.zero(at); // as Gymnasium's first buffer
                LEAVE
            } else if self.shown.write(row, &mut place.leaves, at) {
                LEAVE
            } else {
                SHOW
            };
        }
    }

    /// Forgets the observations that were kept for rows that change now.
    fn forget_shown(&mut self, rows: &Range<usize>) {
        if self.shown.is_empty() {
            return;
        }
        for (row, &command) in rows.clone().zip(&self.commands) {
            if command <= RESET {
                self.shown.forget(row);
            }
        }
        self.shown.tidy();
    }

    /// The second round of a step in `SAME_STEP`: keeps what rows that ended their episode show, and
    /// resets them. Their final observations were copied already where batches have some.
    fn restart(&mut self, place: &mut Place<'_>) -> Result<(), Error> {
        let (rows, count) = (place.rows.clone(), place.rows.len());
        if !self.autoreset.plan_resets(rows.clone(), &mut self.resets[..count]) {
            return Ok(());
        }
        self.ended.clear();
        // Not by `extend`, which calls `next` for each place: `for_each` runs the iterator's nested loops.
        restarted(&self.resets[..count]).for_each(|at| self.ended.push(at));
        let (Some(&first), Some(&last)) = (self.ended.first(), self.ended.last()) else {
            return Ok(());
        };
        self.ended.iter().for_each(|&at| place.leaves.mark_ended(at));
        if !(self.dense_finals && self.infos.is_empty() && self.terminal.is_empty()) {
            self.keep_finals(place)?;
        }
        self.replaced.clear();
        std::mem::swap(&mut self.commands, &mut self.resets);
        self.unused = self.spare.take().or_else(|| Some(Unused::new(self.autoreset.len())));
        let next = self.take_next_resets(place, first..last + 1);
        let own = |row: usize| next.as_ref().and_then(|next| next.get(&row));
        let options = next.is_some().then_some(&own as &dyn Fn(usize) -> Option<_>);
        let loaded = self.load_cached(place, first..last + 1);
        let carried_out =
            loaded.and_then(|()| self.round(place, first..last + 1, &ActionColumns::NONE, options));
        self.spare = self.unused.take();
        carried_out?;
        self.settle_cached(place);
        self.infos.join_resets();
        for &at in &self.ended {
            let (row, command) = (rows.start + at, &self.commands[at..=at]);
            self.autoreset.settle_resets(row..row + 1, command, &mut place.outcomes.row(at));
        }
        Ok(())
    }

    /// Writes the infos that rows that ended their episode have before they are reset.
    fn keep_finals(&mut self, place: &Place<'_>) -> Result<(), Error> {
        let Self { envs, infos, terminal, ended, replaced, .. } = self;
        let kind = Arc::clone(envs.kind());
        let space = &kind.spaces().observation;
        let leaves = (!self.dense_finals).then_some(&place.leaves);
        let (first, number) = (place.rows.start, place.number());
        let mut failed = Vec::new();
        let state = &mut |at: usize, made: &mut InfoWriter| {
            if let Err(message) = terminal.write(envs, first + at, number + at, made) {
                failed.push((at, message));
            }
        };
        let finals = Finals { ended, number, space, leaves, replaced, state };
        infos.keep_finals(finals).map_err(|what| kind.broken(what))?;
        for (at, message) in failed {
            let row = number + at;
            self.faults.push(Fault { row, error: Error::Failed { row, message } });
            self.autoreset.fail(first + at);
            self.resets[at] = SHOW;
        }
        Ok(())
    }

    /// Fails all rows of a task, because the plugin broke its contract or a panic lost the task.
    pub(super) fn fail_all(
        &mut self,
        rows: Range<usize>,
        first: usize,
        error: impl Fn(usize) -> Error,
    ) {
        self.infos.clear();
        let known: HashSet<usize> = self.faults.iter().map(|fault| fault.row).collect();
        for own in rows {
            let row = first + own;
            self.autoreset.fail(own);
            if !known.contains(&row) {
                self.faults.push(Fault { row, error: error(row) });
            }
        }
    }
}

/// The reason why row `row`, counted from the first row of the pool, was not stepped. If the pool
/// has the policy of its environments, it refuses such steps before they are published.
fn refused(refusal: Refusal, row: usize) -> Error {
    let rows = vec![row];
    match refusal {
        Refusal::Over => Error::EpisodeOver { rows },
        Refusal::Failed => Error::NeedsReset { rows },
        Refusal::Unstarted => Error::NeverReset { rows },
    }
}
