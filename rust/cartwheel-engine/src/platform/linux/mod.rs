//! Linux: memfd (since version 3.17), futex (2.6) and pidfd (5.3), and without them the portable means.

mod affinity;
mod futex;
mod process;
mod process_id;
mod shared;

pub(crate) use affinity::{move_to_cpu, pin_to_cpu};
pub(crate) use futex::{sleep, wait, wake, wake_up};
pub(crate) use process::{Process, wait_for_parent};
pub use process_id::process_id;
pub(crate) use shared::{
    MAKES_PRIVATE_AT_ONCE, give_back, held_bytes, make_private, make_shared, reserve,
};

use rustix::io::Errno;

/// The name of this implementation.
pub const NAME: &str = "linux";

/// Whether a system call failed because the kernel is too old for it, or a filter forbids it.
fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::PERM)
}
