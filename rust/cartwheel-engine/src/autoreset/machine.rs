//! The state machine: commands from phases, phases from outcomes.
#![expect(clippy::inline_always, reason = "loops take on the instructions of their caller")]

use std::num::NonZero;
use std::ops::Range;

use super::{AutoresetMode, OnDone, Outcomes, Refusal, RowCommand, Rules};
use crate::transition::PhaseTag;
use cartwheel_core::Transition;
use cartwheel_core::simd::{self, Loops};

const STEP: u8 = RowCommand::Step as u8;
const RESET: u8 = RowCommand::Reset as u8;
const LEAVE: u8 = RowCommand::Leave as u8;
const SHOW: u8 = RowCommand::Show as u8;

const RUNNING: u8 = PhaseTag::Running as u8;
const OVER: u8 = PhaseTag::Over as u8;
const FAILED: u8 = PhaseTag::Failed as u8;

/// Number of rows that fill a vector of their commands.
const VECTOR_ROWS: usize = 32;

/// The state of one row, for [`Autoreset::restore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedRow {
    phase: PhaseTag,
    terminated: u8,
    truncated: u8,
    elapsed: u32,
}

impl SavedRow {
    /// Number of bytes of [`SavedRow::to_bytes`].
    pub const BYTES: usize = 7;

    /// Whether the row failed and has to be reset.
    pub fn has_failed(self) -> bool {
        self.phase == PhaseTag::Failed
    }

    /// The state as bytes: phase, the two flags, steps (little-endian).
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.elapsed.to_le_bytes();
        [self.phase as u8, self.terminated, self.truncated, a, b, c, d]
    }

    /// The state that [`SavedRow::to_bytes`] wrote; `None` for other bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [phase, terminated, truncated, elapsed @ ..] = bytes;
        let phase = PhaseTag::from_byte(phase)?;
        let over = phase == PhaseTag::Over;
        let fits = (terminated | truncated) == u8::from(over) && terminated <= 1 && truncated <= 1;
        let elapsed = u32::from_le_bytes(elapsed);
        fits.then_some(Self { phase, terminated, truncated, elapsed })
    }
}

/// The state machine of a shard. Rows count from 0 within the shard.
#[derive(Debug)]
pub struct Autoreset {
    mode: AutoresetMode,
    on_done: OnDone,
    rules: Rules,
    /// [`Rules::max_episode_steps`]; 0 for no limit.
    limit: u32,
    /// A [`PhaseTag`] for each row.
    phases: Vec<u8>,
    /// The flags with which rows that are over ended, 0 or 1; 0 for all other rows.
    terminated: Vec<u8>,
    truncated: Vec<u8>,
    /// Steps since the last reset.
    elapsed: Vec<u32>,
}

impl Autoreset {
    /// A machine for `rows` rows, all running. A row that was never reset is stepped as it is: its
    /// environment may refuse that, as in Gymnasium.
    pub fn new(mode: AutoresetMode, on_done: OnDone, rows: usize) -> Self {
        Self {
            mode,
            on_done,
            rules: Rules::default(),
            limit: 0,
            phases: vec![RUNNING; rows],
            terminated: vec![0; rows],
            truncated: vec![0; rows],
            elapsed: vec![0; rows],
        }
    }

    /// A machine for `rows` rows that are not stepped before their first explicit reset.
    pub fn unstarted(mode: AutoresetMode, on_done: OnDone, rows: usize) -> Self {
        let phases = vec![PhaseTag::Unstarted as u8; rows];
        Self { phases, ..Self::new(mode, on_done, rows) }
    }

    /// A machine for rows that lost their environments. `over` says which of them had finished an
    /// episode; `NEXT_STEP` resets these as usual. The others are running, and the caller that
    /// steps them reports that the episode [was cut](Transition::CUT).
    pub fn resumed(mode: AutoresetMode, on_done: OnDone, over: &[bool]) -> Self {
        let mut resumed = Self::new(mode, on_done, over.len());
        if mode == AutoresetMode::NextStep {
            resumed.phases = over.iter().map(|&over| if over { OVER } else { RUNNING }).collect();
            resumed.truncated = over.iter().map(|&over| u8::from(over)).collect();
        }
        resumed
    }

    /// Follows these rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self.limit = rules.max_episode_steps.map_or(0, NonZero::get);
        self
    }

    /// The rules that it follows.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.phases.len()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }

    /// The phase of one row.
    pub fn phase(&self, row: usize) -> PhaseTag {
        PhaseTag::from_byte(self.phases[row]).unwrap_or(PhaseTag::Unstarted) // it has no others
    }

    /// The transition of a row that is not stepped: reward 0, and the flags of its last step if it
    /// is over.
    pub fn last_transition(&self, row: usize) -> Transition {
        let (terminated, truncated) = (self.terminated[row] != 0, self.truncated[row] != 0);
        Transition { reward: 0.0, terminated, truncated }
    }

    /// The reason why this row cannot be stepped; `None` if it can.
    pub fn refusal(&self, row: usize) -> Option<Refusal> {
        match self.phase(row) {
            PhaseTag::Over if self.refuses_over() => Some(Refusal::Over),
            PhaseTag::Running | PhaseTag::Over => None,
            PhaseTag::Failed => Some(Refusal::Failed),
            PhaseTag::Unstarted => Some(Refusal::Unstarted),
        }
    }

    /// The rows among `rows` to which a step is refused. Fast where there are none.
    pub fn refusals(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, Refusal)> {
        let min = if self.refuses_over() { OVER } else { FAILED };
        let highest =
            self.phases[rows.clone()].iter().fold(0, |highest, &phase| phase.max(highest));
        let rows = if highest >= min { rows } else { 0..0 };
        rows.filter_map(|row| Some((row, self.refusal(row)?)))
    }

    fn refuses_over(&self) -> bool {
        self.mode.refuses_over(self.on_done)
    }

    /// Decides the effect of a step on each of `rows`: writes one [`RowCommand`] for each. A row to
    /// which the step [is refused](Self::refusals) is left or shown.
    ///
    /// In `SAME_STEP` a row is over only between [`Autoreset::settle`] and
    /// [`Autoreset::settle_resets`], or after it was restored so; a step resets it then.
    ///
    /// # Panics
    ///
    /// When there is not one command for each row.
    pub fn plan(&self, rows: Range<usize>, commands: &mut [u8]) {
        commands.copy_from_slice(&self.phases[rows]);
        if self.mode == AutoresetMode::Disabled {
            for command in commands {
                *command = if *command == RESET { SHOW } else { *command };
            }
        }
    }

    /// [`Autoreset::plan`] for one row.
    pub fn command(&self, row: usize) -> RowCommand {
        let mut command = [LEAVE];
        self.plan(row..row + 1, &mut command);
        RowCommand::from_byte(command[0])
    }

    /// Settles what became of `rows` after their [`RowCommand`]s were carried out, in a step or in an
    /// explicit reset.
    ///
    /// | command | reward | flags | phase |
    /// |---|---|---|---|
    /// | step | stands | stand; truncated at the limit; not terminated if terminations are ignored | over if a flag is set, otherwise running |
    /// | reset | 0 | cleared | running |
    /// | leave, show | 0 | those of the row's last step if it is over, otherwise cleared | as before |
    ///
    /// # Panics
    ///
    /// When there is not one command for each row, or when there are fewer outcomes.
    pub fn settle(&mut self, rows: Range<usize>, commands: &[u8], outcomes: &mut Outcomes<'_>) {
        if rows.len() < VECTOR_ROWS {
            return self.settle_each(rows, commands, outcomes);
        }
        simd::run(Settlement { machine: self, rows, commands, outcomes });
    }

    #[inline(always)] // no loops are left where one row is settled
    fn settle_each(&mut self, rows: Range<usize>, commands: &[u8], outcomes: &mut Outcomes<'_>) {
        let count = rows.len();
        let rewards = &mut outcomes.rewards[..count];
        let terminations = &mut outcomes.terminations[..count];
        let truncations = &mut outcomes.truncations[..count];
        assert_eq!(commands.len(), count, "commands for {count} rows");
        if self.rules.ignore_terminations {
            terminations.fill(0); // rows that are left have kept ones
        }
        clear_rewards(commands, rewards);
        count_steps(commands, self.limit, &mut self.elapsed[rows.clone()], truncations);
        settle_flags(commands, &mut self.terminated[rows.clone()], terminations);
        settle_flags(commands, &mut self.truncated[rows.clone()], truncations);
        let phases = &mut self.phases[rows];
        settle_phases(commands, terminations, truncations, phases);
        outcomes.phases[..count].copy_from_slice(phases);
    }

    /// [`Autoreset::settle`] for one row, with the outcome of its environment; returns the outcome
    /// of the row.
    pub fn settle_row(
        &mut self,
        row: usize,
        command: RowCommand,
        transition: Transition,
    ) -> Transition {
        let mut reward = [transition.reward];
        let mut termination = [u8::from(transition.terminated)];
        let mut truncation = [u8::from(transition.truncated)];
        let mut outcomes = Outcomes {
            rewards: &mut reward,
            terminations: &mut termination,
            truncations: &mut truncation,
            phases: &mut [0],
        };
        self.settle_each(row..row + 1, &[command as u8], &mut outcomes);
        Transition {
            reward: reward[0],
            terminated: termination[0] != 0,
            truncated: truncation[0] != 0,
        }
    }

    /// Settles a step of `rows` that may be repeated, instead of [`Autoreset::settle`]: counts the
    /// step of rows whose episode goes on, adds their rewards to `sums`, and changes the commands of
    /// all other rows to [`RowCommand::Leave`]. Returns whether any row goes on. The last step of each
    /// row is settled by [`Autoreset::settle`], with the command that it had at first.
    ///
    /// # Panics
    ///
    /// When there is not one command for each row, or when there are fewer outcomes or sums.
    pub fn settle_repeated(
        &mut self,
        rows: Range<usize>,
        commands: &mut [u8],
        outcomes: &Outcomes<'_>,
        sums: &mut [f64],
    ) -> bool {
        assert_eq!(commands.len(), rows.len(), "commands for {} rows", rows.len());
        let mut any = false;
        for (at, row) in rows.enumerate() {
            let (terminated, truncated) = (outcomes.terminations[at], outcomes.truncations[at]);
            if commands[at] == STEP && self.goes_on(row, terminated != 0, truncated != 0) {
                sums[at] += outcomes.rewards[at];
                any = true;
            } else {
                commands[at] = LEAVE;
            }
        }
        any
    }

    /// [`Autoreset::settle_repeated`] for one row, which was stepped; returns whether it goes on.
    pub fn settle_repeated_row(&mut self, row: usize, transition: &Transition) -> bool {
        self.goes_on(row, transition.terminated, transition.truncated)
    }

    /// Whether the episode goes on after a step with these flags; counts the step if it does.
    fn goes_on(&mut self, row: usize, terminated: bool, truncated: bool) -> bool {
        let steps = self.elapsed[row].wrapping_add(1);
        let cut = truncated || (self.limit != 0 && steps >= self.limit);
        let over = cut || (terminated && !self.rules.ignore_terminations);
        if !over {
            self.elapsed[row] = steps;
        }
        !over
    }

    /// In `SAME_STEP`, the second round of a step, for rows that were just settled: writes
    /// [`RowCommand::Reset`] for those that are over and [`RowCommand::Leave`] for all others. The caller
    /// has to keep the terminal observation and info of a row before it resets the row. Returns
    /// whether there is any row to reset; in the other modes there is none.
    ///
    /// # Panics
    ///
    /// When there is not one command for each row.
    pub fn plan_resets(&self, rows: Range<usize>, commands: &mut [u8]) -> bool {
        let phases = &self.phases[rows];
        assert_eq!(commands.len(), phases.len(), "commands for {} rows", phases.len());
        let resets = if self.mode == AutoresetMode::SameStep { OVER } else { u8::MAX };
        let mut any = false;
        for (command, &phase) in commands.iter_mut().zip(phases) {
            *command = if phase == resets { RESET } else { LEAVE };
            any |= phase == resets;
        }
        any
    }

    /// [`Autoreset::plan_resets`] for one row.
    pub fn resets_now(&self, row: usize) -> bool {
        self.plan_resets(row..row + 1, &mut [LEAVE])
    }

    /// Settles the second round. Rewards and flags of rows that were reset or left stand; a row
    /// that was reset is running. A row that [failed](Self::fail) meanwhile has to be shown: its
    /// reward and flags are cleared.
    ///
    /// # Panics
    ///
    /// When there is not one command for each row, or when there are fewer outcomes.
    pub fn settle_resets(
        &mut self,
        rows: Range<usize>,
        commands: &[u8],
        outcomes: &mut Outcomes<'_>,
    ) {
        assert_eq!(commands.len(), rows.len(), "commands for {} rows", rows.len());
        for (at, (row, &command)) in rows.zip(commands).enumerate() {
            if command == RESET {
                self.begin_episode(row);
                outcomes.phases[at] = RUNNING;
            } else if command == SHOW {
                outcomes.write(at, &self.last_transition(row), self.phase(row));
            }
        }
    }

    /// [`Autoreset::settle_resets`] for one row, which was reset.
    pub fn begin_episode(&mut self, row: usize) {
        self.set(row, PhaseTag::Running);
        self.elapsed[row] = 0;
    }

    /// Moves a row that has just begun an episode to another place in it: as if it had made a number
    /// of steps below the limit, to which `draw`, from all numbers, is scaled. Without a limit, it stays
    /// at the first one.
    #[expect(clippy::cast_possible_truncation, reason = "what is scaled is below the limit")]
    pub fn stagger(&mut self, row: usize, draw: u64) {
        self.elapsed[row] = ((u128::from(draw) * u128::from(self.limit)) >> u64::BITS) as u32;
    }

    /// Marks a row as failed: a call of its environment did not return.
    pub fn fail(&mut self, row: usize) {
        self.set(row, PhaseTag::Failed);
    }

    /// Sets the phase of a row whose episode did not end, or is forgotten.
    fn set(&mut self, row: usize, phase: PhaseTag) {
        self.phases[row] = phase as u8;
        (self.terminated[row], self.truncated[row]) = (0, 0);
    }

    /// The phase of one row and its place in the episode, for restoring them later.
    pub fn save(&self, row: usize) -> SavedRow {
        let (terminated, truncated) = (self.terminated[row], self.truncated[row]);
        SavedRow { phase: self.phase(row), terminated, truncated, elapsed: self.elapsed[row] }
    }

    /// Restores a saved row.
    pub fn restore(&mut self, row: usize, saved: SavedRow) {
        self.phases[row] = saved.phase as u8;
        (self.terminated[row], self.truncated[row]) = (saved.terminated, saved.truncated);
        self.elapsed[row] = saved.elapsed;
    }
}

/// The arguments of [`Autoreset::settle`].
struct Settlement<'a, 'o> {
    machine: &'a mut Autoreset,
    rows: Range<usize>,
    commands: &'a [u8],
    outcomes: &'a mut Outcomes<'o>,
}

impl Loops for Settlement<'_, '_> {
    #[inline(always)]
    fn run(self) {
        self.machine.settle_each(self.rows, self.commands, self.outcomes);
    }
}

// The loops of `Autoreset::settle`. Each goes over few columns and has no branches, so that it
// becomes vector instructions: the arguments of a function are known not to overlap. A mask has all
// bits set or none.

/// Rows that were not stepped have no reward.
#[inline(always)]
fn clear_rewards(commands: &[u8], rewards: &mut [f64]) {
    for (reward, &command) in rewards.iter_mut().zip(commands) {
        *reward = if command == STEP { *reward } else { 0.0 };
    }
}

/// Counts steps, and truncates the episodes that reach the limit, if it is not 0.
#[inline(always)]
fn count_steps(commands: &[u8], limit: u32, elapsed: &mut [u32], truncations: &mut [u8]) {
    for ((elapsed, truncation), &command) in elapsed.iter_mut().zip(truncations).zip(commands) {
        let steps = elapsed.wrapping_add(u32::from(command == STEP));
        *truncation |= u8::from(limit != 0 && steps >= limit);
        *elapsed = if command == RESET { 0 } else { steps };
    }
}

/// A flag stands where a row was stepped, is cleared where it was reset, and is the kept one
/// elsewhere.
#[inline(always)]
fn settle_flags(commands: &[u8], kept: &mut [u8], flags: &mut [u8]) {
    for ((flag, kept), &command) in flags.iter_mut().zip(kept).zip(commands) {
        let stepped = u8::from(command == STEP).wrapping_neg();
        let left = u8::from(command > RESET).wrapping_neg();
        *kept = (u8::from(*flag != 0) & stepped) | (*kept & left);
        *flag = *kept;
    }
}

/// A row that was stepped or reset is over if a flag is set, and running otherwise.
#[inline(always)]
fn settle_phases(commands: &[u8], terminations: &[u8], truncations: &[u8], phases: &mut [u8]) {
    let flags = terminations.iter().zip(truncations);
    for ((phase, (termination, truncation)), &command) in phases.iter_mut().zip(flags).zip(commands)
    {
        let left = u8::from(command > RESET).wrapping_neg();
        *phase = ((termination | truncation) & !left) | (*phase & left);
    }
}
