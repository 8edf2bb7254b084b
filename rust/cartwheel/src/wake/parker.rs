//! The parker: one word per direction, on which one side sleeps and the other wakes it.

use std::time::Duration;

use super::futex::Word;

/// Nothing to do, nobody asleep.
pub(crate) const IDLE: u32 = 0;
/// The owner of the word sleeps, or is about to.
pub const PARKED: u32 = 1;
/// The doorbell was rung.
const RUNG: u32 = 2;

const OP_BITS: u32 = 3;

/// What a worker is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Step every row of the shard.
    Step = 2,
    /// Reset rows.
    Reset = 3,
    /// Answer a control call.
    Call = 4,
    /// End.
    Close = 5,
    /// Take the rows that were sent.
    Take = 6,
}

/// An operation and the number of its task.
///
/// Numbers start at 1, go up by one with each task and wrap around, leaving out 0. They make an
/// acknowledgement of an earlier task recognisable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Number of the task, `1 ..= Command::LAST`.
    pub task: u32,
}

impl Command {
    /// The largest task number.
    pub const LAST: u32 = u32::MAX >> OP_BITS;

    /// The number after `task`.
    pub fn next(task: u32) -> u32 {
        if task >= Self::LAST { 1 } else { task + 1 }
    }

    fn to_word(self) -> u32 {
        debug_assert!((1..=Self::LAST).contains(&self.task), "tasks are numbered from 1");
        (self.task << OP_BITS) | self.op as u32
    }

    fn from_word(word: u32) -> Option<Self> {
        let op = match word & ((1 << OP_BITS) - 1) {
            2 => Op::Step,
            3 => Op::Reset,
            4 => Op::Call,
            5 => Op::Close,
            6 => Op::Take,
            _ => return None,
        };
        Some(Self { op, task: word >> OP_BITS })
    }
}

/// Hands `command` to the owner of `word` and wakes it if it sleeps. Returns whether it slept.
pub fn publish(word: &impl Word, command: Command) -> bool {
    let slept = word.swap(command.to_word()) == PARKED;
    if slept {
        word.wake();
    }
    slept
}

/// Takes the command in `word`, if there is one.
///
/// The exchange fails, and the newer command is taken, when the pool publishes a `Close` on top:
/// a plain store of `IDLE` would erase it.
pub fn take(word: &impl Word) -> Option<Command> {
    let mut seen = word.load();
    loop {
        let command = Command::from_word(seen)?;
        match word.compare_exchange(seen, IDLE) {
            Ok(_) => return Some(command),
            Err(now) => seen = now,
        }
    }
}

/// Whether the command in `word` is to end. It stays there.
pub fn is_closing(word: &impl Word) -> bool {
    Command::from_word(word.load()).is_some_and(|command| command.op == Op::Close)
}

/// How a [`park`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parked {
    /// There was something to look at, without sleeping.
    Ready,
    /// It slept, for a slice or less.
    Slept,
}

/// Sleeps on `word` for at most `slice`, unless there is a command or a ring in it already.
///
/// A sleeper that wakes by itself leaves `PARKED` behind, which costs the other side at most one
/// superfluous wake-up.
pub fn park(word: &impl Word, slice: Duration) -> Parked {
    match word.compare_exchange(IDLE, PARKED) {
        Ok(_) | Err(PARKED) => {
            word.wait(PARKED, slice);
            Parked::Slept
        }
        Err(_) => Parked::Ready,
    }
}

/// Rings the doorbell of a waiting pool and wakes it if it sleeps.
pub fn ring(word: &impl Word) {
    if word.swap(RUNG) == PARKED {
        word.wake();
    }
}

/// Makes the doorbell silent again, before a task is published or after it was heard.
pub fn doorbell_disarm(word: &impl Word) {
    word.swap(IDLE);
}
