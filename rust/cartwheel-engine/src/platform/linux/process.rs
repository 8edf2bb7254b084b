//! Watching processes by pidfds.
//!
//! A pidfd becomes readable when its process ends, regardless of which process started or reaps it,
//! and a recycled process id never confuses it.

use std::io;
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::super::by_id::{self, ById};
use super::is_missing;

/// A process that is watched.
#[derive(Debug)]
pub(crate) enum Process {
    Pidfd(OwnedFd),
    ById(ById),
}

impl Process {
    /// Watches a process that is alive, or that has not been waited for.
    pub(crate) fn watch(pid: Pid) -> io::Result<Self> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Err(error) if is_missing(error) => ById::watch(pid).map(Self::ById),
            pidfd => Ok(Self::Pidfd(pidfd?)),
        }
    }

    /// Waits until the process ends, for at most `timeout`; returns whether it ended.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        match self {
            Self::Pidfd(pidfd) => ended(pidfd, timeout),
            Self::ById(process) => process.wait(timeout),
        }
    }

    /// Kills the process.
    pub(crate) fn kill(&self) {
        match self {
            // It may have ended in the meantime, which is fine.
            Self::Pidfd(pidfd) => drop(pidfd_send_signal(pidfd, Signal::KILL)),
            Self::ById(process) => process.kill(),
        }
    }
}

fn ended(pidfd: &impl AsFd, timeout: Duration) -> bool {
    let began = Instant::now();
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let left = Timespec::try_from(left).ok(); // if it does not fit, without a limit
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => {} // a handled signal says nothing about the process
            polled => return polled.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Returns when the process `pid` has ended, which started this one and gave it `lifeline`, or when the
/// other end of `lifeline` is closed.
///
/// The process may execute another program, under the same id, or a fork of it may hold the other end of
/// `lifeline`: so both are watched.
pub(crate) fn wait_for_parent(pid: Pid, lifeline: Option<&OwnedFd>) {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return by_id::wait_for_parent(pid, lifeline); // there are none, or the process has ended
    };
    let of_process = PollFd::new(&pidfd, PollFlags::IN);
    let of_pipe = lifeline.map(|pipe| PollFd::new(pipe, PollFlags::IN)); // nothing is ever written
    let mut watched: Vec<_> = iter::once(of_process).chain(of_pipe).collect();
    while !poll(&mut watched, None).is_ok_and(|ready| ready > 0) {}
}
