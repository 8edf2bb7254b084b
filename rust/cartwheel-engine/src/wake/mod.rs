//! When a worker sleeps, and what wakes it. `README.md` beside this file explains the protocol.

mod alarm;
mod caller;
mod countdown;
mod futex;
#[cfg(loom)]
mod model;
mod parker;
mod patience;
mod task_word;
mod trials;
mod word;

pub use alarm::{SLEEPERS, Sleeper, publish_all};
pub use caller::Caller;
pub use countdown::{Countdown, acknowledge};
pub use futex::Futex;
#[cfg(loom)]
pub use model::{ModelAlarm, ModelWord, every_death, every_interleaving};
pub(crate) use parker::IDLE;
pub use parker::{PARKED, Parked, doorbell_disarm, is_closing, park, publish, ring, take};
pub use patience::Patience;
pub use task_word::{Op, TaskWord};
pub(crate) use trials::Trials;
pub use word::{Alarm, Word};

pub use crate::platform::Scope;
#[cfg(loom)]
pub use crate::{failpoint::dies_after, sync::AtomicU32};
