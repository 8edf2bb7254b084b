//! The native environments of one worker.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::mailbox::{Fault, Mailbox, RowReset};
use super::pace::Pace;
use super::replacements::Replacements;
use super::requests::answer;
use super::reset::reset_row;
use super::rows::{EnvColumns, NativeRows};
use super::settings::ShardSettings;
use super::step::{settle_step, step_row};
use super::stream::unforeseen;
use crate::autoreset::{Autoreset, Command, Outcomes};
use crate::env::{Env, Spaces, View};
use crate::error::Error;
use crate::info::{InfoWriter, Kind, RecordAt};
use crate::memory::{ActionRows, SlabColumns};
use crate::protocol::{Tally, Work};
use crate::transition::PhaseTag;
use crate::wake::Op;
use crate::worker::{Report, Shard, Task, message_of};
use cartwheel_core::Transition;

/// Native environments of one type, stepped in a loop that is compiled for it.
///
/// A step makes no indirect call and allocates nothing.
pub struct NativeShard<E: Env> {
    env_columns: EnvColumns<E>,
    autoreset: Autoreset,
    /// What the present step does to each of its rows.
    commands: Vec<u8>,
    spaces: Arc<Spaces>,
    /// Options of autoresets.
    options: E::ResetOptions,
    replacements: Replacements<E>,
    infos: InfoWriter,
    /// The info record that is being written.
    open: Option<RecordAt>,
    faults: Vec<Fault>,
    mailbox: Arc<Mailbox>,
    /// The result of the step of a single sent row, or the message of its panic.
    prepared: Option<Result<Transition, String>>,
    pace: Pace,
}

impl<E: Env> fmt::Debug for NativeShard<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeShard").field("autoreset", &self.autoreset).finish_non_exhaustive()
    }
}

impl<E: Env> NativeShard<E> {
    /// A shard of these environments, each with an unpredictable stream.
    pub(super) fn new(
        envs: Vec<E>,
        options: Arc<E::Options>,
        spaces: Arc<Spaces>,
        settings: ShardSettings,
        mailbox: Arc<Mailbox>,
    ) -> Result<Self, Error> {
        let rows = envs.len();
        let (rngs, seeds) = unforeseen(rows)?;
        let autoreset = Autoreset::unstarted(settings.autoreset, settings.on_done, rows);
        Ok(Self {
            env_columns: EnvColumns::new(envs, rngs, seeds),
            autoreset: autoreset.limited(settings.max_episode_steps),
            commands: vec![Command::Leave as u8; rows],
            spaces,
            options: E::ResetOptions::default(),
            replacements: Replacements::new(options, settings.replacements),
            infos: InfoWriter::new(),
            open: None,
            faults: Vec::new(),
            mailbox,
            prepared: None,
            pace: Pace::default(),
        })
    }

    /// Calls `one` for each row, and writes the result. A panic fails the row in which it happened,
    /// and the rows after it still run.
    fn each_row<F>(&mut self, task: &mut Task<'_>, mut one: F)
    where
        F: FnMut(&mut Autoreset, &mut NativeRows<'_, E>, usize) -> Result<Transition, Error>,
    {
        let (first, rows) = (task.first, task.own_rows());
        let next = Cell::new(rows.start);
        while next.get() < rows.end {
            // Around the loop and not inside it: a guard for each row would cost a call for each
            // row.
            let ended = catch_unwind(AssertUnwindSafe(|| self.run_from(task, &next, &mut one)));
            let error = match ended {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(panic) => {
                    let (row, message) = (first + next.get(), message_of(panic.as_ref()));
                    Error::Panicked { row, message }
                }
            };
            if let Some(record) = self.open.take() {
                self.infos.cancel(record);
            }
            if let Error::Panicked { message, .. } = &error {
                if self.replace(task, next.get(), message, &mut one) {
                    next.set(next.get() + 1);
                    continue;
                }
                self.autoreset.fail(next.get());
            }
            self.faults.push(Fault { row: first + next.get(), error });
            // Writes the state that the row can still show; otherwise the place would keep a row of
            // another batch.
            let shown = catch_unwind(AssertUnwindSafe(|| self.show(task, next.get())));
            drop(shown);
            next.set(next.get() + 1);
        }
    }

    /// Calls `one` for each row from `next` on, and counts `next` up, until the first error.
    ///
    /// Everything that the loop needs is local to this function, so it stays in registers; a guard
    /// around the loop would keep it in memory.
    fn run_from<F>(
        &mut self,
        task: &mut Task<'_>,
        next: &Cell<usize>,
        one: &mut F,
    ) -> Result<(), Error>
    where
        F: FnMut(&mut Autoreset, &mut NativeRows<'_, E>, usize) -> Result<Transition, Error>,
    {
        let (step, first, span) = (task.op == Op::Step, task.first, task.own_rows());
        let tally = task.tally;
        let (mut actions, columns) = task.columns();
        let actions = step.then(|| E::Action::rows(&mut actions)).transpose()?;
        let (autoreset, mut batch, mut outcomes) =
            self.rows(first, span.clone(), tally, actions, columns);
        for row in next.get()..span.end {
            next.set(row);
            if step {
                batch.step_ahead(row);
            }
            let transition = one(autoreset, &mut batch, row)?;
            outcomes.write(row - span.start, &transition, autoreset.phase(row));
        }
        next.set(span.end);
        Ok(())
    }

    /// The machine, the rows that it drives, and where their outcomes go.
    fn rows<'a>(
        &'a mut self,
        first: usize,
        span: Range<usize>,
        tally: Tally<'a>,
        actions: Option<<E::Action as View>::Rows<'a>>,
        mut columns: SlabColumns<'a>,
    ) -> (&'a mut Autoreset, NativeRows<'a, E>, Outcomes<'a>) {
        let batch = NativeRows {
            first,
            span,
            observations: E::Observation::rows_mut(&mut columns),
            env_columns: &mut self.env_columns,
            commands: &self.commands,
            actions,
            space: &self.spaces.observation,
            options: &self.options,
            infos: &mut self.infos,
            open: &mut self.open,
            tally,
        };
        (&mut self.autoreset, batch, columns.outcomes())
    }

    /// Replaces an environment that panicked, and continues: with `one` again if that is a reset,
    /// otherwise as after a step that truncated. Returns whether all that succeeded.
    fn replace<F>(&mut self, task: &mut Task<'_>, row: usize, panic: &str, one: &mut F) -> bool
    where
        F: FnMut(&mut Autoreset, &mut NativeRows<'_, E>, usize) -> Result<Transition, Error>,
    {
        let Some(env) = self.replacements.make(row, self.env_columns.envs.len()) else {
            return false;
        };
        let old = std::mem::replace(&mut self.env_columns.envs[row], env);
        if catch_unwind(AssertUnwindSafe(|| drop(old))).is_err() {
            return false; // the environment's own panic is reported; a reset restarts the row
        }
        task.tally.count_replacements(row, 1);
        self.env_columns.forget_shown(row);
        self.infos.forget(task.first + row);
        let record = self.infos.begin(Kind::Info, task.first + row, 0);
        self.infos.key("env_error");
        self.infos.text(panic);
        self.infos.end(record);
        let gone_on = catch_unwind(AssertUnwindSafe(|| {
            let (step, first, span) = (task.op == Op::Step, task.first, task.own_rows());
            let tally = task.tally;
            let (_, columns) = task.columns();
            let (autoreset, mut rows, mut outcomes) =
                self.rows(first, span.clone(), tally, None, columns);
            let transition = if step {
                rows.reset(row);
                settle_step(autoreset, &mut rows, row, Transition::CUT)
            } else {
                one(autoreset, &mut rows, row)?
            };
            outcomes.write(row - span.start, &transition, autoreset.phase(row));
            Ok::<_, Error>(())
        }));
        matches!(gone_on, Ok(Ok(())))
    }

    /// Shows a row in its present state.
    fn show(&mut self, task: &mut Task<'_>, row: usize) {
        let (first, span, tally) = (task.first, task.own_rows(), task.tally);
        let (_, columns) = task.columns();
        let (autoreset, mut batch, mut outcomes) =
            self.rows(first, span.clone(), tally, None, columns);
        outcomes.write(row - span.start, &autoreset.last_transition(row), autoreset.phase(row));
        batch.repeat(row);
    }

    fn step_rows(&mut self, task: &mut Task<'_>) {
        self.env_columns.forget_block();
        if !self.env_columns.shown.is_empty() {
            self.forget_shown(&task.own_rows());
        }
        let span = task.own_rows();
        self.autoreset.plan(span.clone(), &mut self.commands[..span.len()]);
        match self.prepared.take() {
            None => {
                self.each_row(task, |autoreset, rows, row| step_row(autoreset, rows, row, None));
            }
            Some(Ok(transition)) => self.each_row(task, |autoreset, rows, row| {
                step_row(autoreset, rows, row, Some(transition))
            }),
            Some(Err(message)) => self.each_row(task, |_, rows, row| {
                Err(Error::Panicked { row: rows.first + row, message: message.clone() })
            }),
        }
    }

    fn reset_rows(&mut self, task: &mut Task<'_>) {
        if task.sent {
            return self.reset_sent(task);
        }
        let (how, options) = self.mailbox.take_reset();
        let how = |row: usize| how.get(row).unwrap_or(&RowReset::Continue);
        self.each_row(task, |autoreset, rows, row| {
            reset_row(autoreset, rows, row, how(row), options.as_ref())
        });
        self.show_unstarted(task);
    }

    fn reset_sent(&mut self, task: &mut Task<'_>) {
        let mailbox = Arc::clone(&self.mailbox);
        self.each_row(task, |autoreset, rows, row| {
            let posted = mailbox.take_row_reset(rows.first + row);
            let (how, options) = posted.unwrap_or((RowReset::Continue, None));
            reset_row(autoreset, rows, row, &how, options.as_ref())
        });
        self.show_unstarted(task);
    }

    /// Shows zeros for rows that were never reset, as Gymnasium's first buffer does.
    fn show_unstarted(&self, task: &mut Task<'_>) {
        let span = task.own_rows();
        let mut rows =
            span.clone().filter(|&row| self.autoreset.phase(row) == PhaseTag::Unstarted).peekable();
        if rows.peek().is_none() {
            return; // counting leaves allocates
        }
        let (first, leaves) = (task.slab.rows().start, self.spaces.observation.leaves().len());
        for row in rows {
            let place = first + row - span.start;
            (0..leaves).for_each(|leaf| task.slab.write_zeros(leaf, place));
        }
    }

    /// Forgets the states in which these rows were shown, except where the coming step shows them
    /// once more.
    fn forget_shown(&mut self, rows: &Range<usize>) {
        for row in rows.clone().filter(|&row| !self.autoreset.is_frozen(row)) {
            self.env_columns.forget_shown(row);
        }
        if self.env_columns.shown.iter().all(Option::is_none) {
            self.env_columns.shown.clear();
        }
    }
}

impl<E: Env> Shard for NativeShard<E> {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        self.infos.clear();
        let start = (task.sent && self.pace.is_due()).then(Instant::now);
        match task.op {
            Op::Step => self.step_rows(task),
            Op::Reset => self.reset_rows(task),
            Op::Call | Op::Take | Op::Close => {
                let request = self.mailbox.take_request();
                let answer = request.map(|request| {
                    let answered = catch_unwind(AssertUnwindSafe(|| {
                        answer(&mut self.env_columns, &self.autoreset, request)
                    }));
                    answered.unwrap_or_else(|panic| {
                        Err(cartwheel_core::Error::BadParameter(message_of(panic.as_ref())).into())
                    })
                });
                if let Some(answer) = answer {
                    self.mailbox.post_answer(answer);
                }
            }
        }
        let spilled = !task.store_infos(self.infos.stream());
        if spilled {
            self.mailbox.post_spilled(task.rows.start, self.infos.stream());
        }
        if let Some(start) = start {
            self.pace.end(start.elapsed(), task.rows.len());
        }
        let failed = !self.faults.is_empty();
        if failed {
            self.mailbox.post_faults(std::mem::take(&mut self.faults));
        }
        Report { failed, spilled }
    }

    fn batch_of_sent(&self) -> usize {
        self.pace.rows()
    }

    fn prepare(&mut self, work: &Work, first: usize, actions: &ActionRows<'_>) {
        let row = work.rows.start - first;
        let is_step = work.op == Op::Step && self.autoreset.phase(row) == PhaseTag::Running;
        if E::BLOCK > 1 || !is_step {
            return; // rows that are stepped in blocks, and resets, are cheap
        }
        let start = Instant::now();
        let mut columns = actions.columns();
        let Ok(rows) = E::Action::rows(&mut columns) else { return }; // `run` reports the error
        let EnvColumns { envs, rngs, .. } = &mut self.env_columns;
        let step = AssertUnwindSafe(|| envs[row].step(E::Action::row(&rows, 0), &mut rngs[row]));
        self.prepared = Some(catch_unwind(step).map_err(|panic| message_of(panic.as_ref())));
        self.pace.begin(start.elapsed());
    }

    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        self.infos.clear();
        (self.open, self.prepared) = (None, None);
        if task.op == Op::Call {
            self.mailbox
                .post_answer(Err(cartwheel_core::Error::BadParameter(message.to_owned()).into()));
            return Report::default();
        }
        for (own, row) in task.own_rows().zip(task.rows.clone()) {
            self.autoreset.fail(own);
            if self.faults.iter().all(|fault| fault.row != row) {
                let message = message.to_owned();
                self.faults.push(Fault { row, error: Error::Panicked { row, message } });
            }
        }
        self.mailbox.post_faults(std::mem::take(&mut self.faults));
        Report { failed: true, spilled: false }
    }

    /// Everything is in the mailbox already.
    fn flush(&mut self, _report: Report) {}

    fn close(&mut self) {
        self.env_columns.clear();
    }
}
