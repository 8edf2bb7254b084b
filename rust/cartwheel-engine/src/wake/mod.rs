//! Sleep and wake-ups of workers. `README.md` in this folder explains the protocol.

mod backoff;
mod caller;
mod event_count;
mod futex;
#[cfg(all(loom, test))]
mod interleavings;
mod latch;
#[cfg(all(loom, test))]
mod model;
mod parker;
mod spin_policy;
mod task_word;
mod word;

pub(crate) use backoff::Backoff;
pub(crate) use caller::Caller;
pub(crate) use event_count::{SLEEPERS, Sleeper, publish_all};
pub(crate) use futex::Futex;
pub(crate) use latch::{Latch, acknowledge, acknowledge_uncounted, count, has_acknowledged};
#[cfg(all(loom, test))]
pub(crate) use model::{ModelWord, every_death, every_interleaving};
pub(crate) use parker::{
    IDLE, PARKED, Parked, WakeRequest, doorbell_disarm, is_closing, park, publish, ring, take,
};
pub(crate) use spin_policy::SpinPolicy;
pub use task_word::Op;
pub(crate) use task_word::TaskWord;
pub(crate) use word::Word;

pub use crate::platform::Scope;
