//! The operating system. No other module of this crate calls it, except through `std`.
//!
//! There are two implementations. `linux` is chosen on Linux, `portable` on every other Unix, and on
//! Linux with the feature `portable`, which is how it is tested. `README.md` compares them. The mode of
//! floats (`floats`) is the processor's, and the same on both.
//!
//! Both map memory by `mmap` (`pages`), and send bytes and descriptors over sockets (`rights`). Where a kernel, or a filter of system calls (seccomp), refuses
//! memfd, futex or pidfd, `linux` uses the portable means instead.
//!
//! # Invariants
//!
//! 1. An address that is given back or replaced here is the caller's: a whole mapping made by `pages`,
//!    of this length, into which nothing else maps; where pages are given back, a part of one.
//! 2. While memory is made private, no other thread of this process reads or writes it, unless
//!    `MAKES_PRIVATE_AT_ONCE`. What other processes write meanwhile has no meaning here.

mod by_id;
mod floats;
mod fork_handlers;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
mod pages;
mod poll;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod portable;
mod rights;
mod shm;
mod thread_exit;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
use linux as system;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
use portable as system;

#[cfg(feature = "failpoints")]
pub(crate) use by_id::stop_this_process;
pub(crate) use by_id::{kill_this_process, pid};
pub use floats::with_standard_floats;
pub use fork_handlers::{ForkHandler, call_around_forks};
pub(crate) use pages::{Access, Behind, give_back_pages, map, unmap};
pub(crate) use rights::{prepare_socket, receive_descriptor, send_bytes, send_descriptor};
pub(crate) use system::{
    MAKES_PRIVATE_AT_ONCE, Process, give_back, held_bytes, make_private, make_shared, move_to_cpu,
    pin_to_cpu, reserve, sleep, wait, wait_for_parent, wake, wake_up,
};
pub use system::{NAME, process_id};
pub use thread_exit::{hang, hang_on_exit};

use std::io;
use std::os::fd::OwnedFd;

/// The processes that share a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This process alone.
    Private,
    /// This process and the processes that receive the descriptor.
    Shared,
}

/// The bytes of shared memory, and the number of its file; 0 on systems that have no such number.
pub(crate) fn look_at(shared: &OwnedFd) -> io::Result<(usize, u64)> {
    let status = rustix::fs::fstat(shared)?;
    Ok((usize::try_from(status.st_size).unwrap_or(0), status.st_ino))
}
