//! When a worker sleeps, and who wakes it. `README.md` beside this file explains the protocol.

mod futex;
mod parker;
mod patience;

pub use futex::{Futex, Word};
pub(crate) use parker::IDLE;
pub use parker::{
    Command, Op, PARKED, Parked, doorbell_disarm, is_closing, park, publish, ring, take,
};
pub use patience::Patience;
