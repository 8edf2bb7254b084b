//! The word that gives a worker its task: an operation and a number.

use crate::call::Call;

const OP_BITS: u32 = 3;

/// A worker's operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Step every row of the shard.
    Step = 2,
    /// Reset rows.
    Reset = 3,
    /// Answer a control call.
    Call = 4,
    /// Close the shard and end.
    Close = 5,
    /// Take the rows that were sent.
    Take = 6,
    /// Settle the rows that were stepped, with the rewards of their owner.
    Settle = 7,
}

impl From<Call> for Op {
    fn from(call: Call) -> Self {
        match call {
            Call::Step => Self::Step,
            Call::Reset => Self::Reset,
            Call::Call => Self::Call,
            Call::Settle => Self::Settle,
        }
    }
}

/// An operation and the number of its task.
///
/// Numbers start at 1, increase by one with each task and wrap around, leaving out 0. They make an
/// acknowledgement of an earlier task recognizable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskWord {
    /// The operation.
    pub(crate) op: Op,
    /// Number of the task, `1 ..= TaskWord::LAST`.
    pub(crate) task: u32,
}

impl TaskWord {
    /// Take the rows that were sent. Every send has the same task word, since it is not acknowledged:
    /// a number of its own would use up the numbers of tasks, and after 2^29 sends the next task
    /// would be taken for the last one.
    pub(crate) const TAKE: Self = Self { op: Op::Take, task: 1 };

    /// The largest task number.
    pub(crate) const LAST: u32 = u32::MAX >> OP_BITS;

    /// The number after `task`.
    pub(crate) fn next(task: u32) -> u32 {
        if task >= Self::LAST { 1 } else { task + 1 }
    }

    pub(super) fn to_word(self) -> u32 {
        debug_assert!((1..=Self::LAST).contains(&self.task), "tasks are numbered from 1");
        (self.task << OP_BITS) | self.op as u32
    }

    pub(super) fn from_word(word: u32) -> Option<Self> {
        let op = match word & ((1 << OP_BITS) - 1) {
            2 => Op::Step,
            3 => Op::Reset,
            4 => Op::Call,
            5 => Op::Close,
            6 => Op::Take,
            7 => Op::Settle,
            _ => return None,
        };
        Some(Self { op, task: word >> OP_BITS })
    }
}
