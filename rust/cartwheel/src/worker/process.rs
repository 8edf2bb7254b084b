//! Worker processes: telling whether the other side still lives.
//!
//! A pidfd becomes readable when its process ends, whoever started it and whoever reaps it, and it
//! is never confused by a recycled process id.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::error::Error;
use crate::memory::process_id;

/// A pool's hold on one worker process.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: u32,
    pidfd: OwnedFd,
}

impl ProcessHandle {
    /// The process with this id, which must be alive or not yet reaped.
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when there is no such process, or no descriptor left.
    pub fn new(pid: u32) -> Result<Self, Error> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let raw = raw.ok_or_else(|| Error::BadPlan(format!("{pid} is no process id")))?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty())
            .map_err(Error::os(format!("watching worker process {pid}")))?;
        Ok(Self { pid, pidfd })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has not ended.
    pub fn is_alive(&self) -> bool {
        !ended(&self.pidfd, Some(Duration::ZERO))
    }

    /// Waits until it ends, for at most `timeout`; whether it ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        ended(&self.pidfd, Some(timeout))
    }

    /// Ends it at once.
    pub fn kill(&self) {
        // It may have ended meanwhile, which is what was wanted.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

/// How long a process that was killed may take to be gone.
const DYING: Duration = Duration::from_secs(1);

/// Whether there is no process with this id, or only what is left of one, at the latest in a moment. False
/// where that cannot be told.
pub(crate) fn has_ended(pid: u32) -> bool {
    if pid == process_id() {
        return false;
    }
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => ended(&pidfd, Some(DYING)),
        Err(error) => error == Errno::SRCH,
    }
}

fn ended(pidfd: &impl AsFd, timeout: Option<Duration>) -> bool {
    let began = Instant::now();
    loop {
        let left = timeout.map(|timeout| {
            let left = timeout.saturating_sub(began.elapsed());
            Timespec::try_from(left).expect("waits are shorter than a century")
        });
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => {} // a signal was handled, which says nothing about the process
            polled => return polled.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Ends this process as soon as the one behind `parent`, a pidfd, is gone.
///
/// The watch is a thread of its own, so that it works whatever the environments do; it
/// ends the process by SIGKILL, because an orderly exit could wait for a hung environment.
///
/// # Errors
///
/// [`Error::Os`] when no thread can be started.
pub fn exit_with_parent(parent: OwnedFd) -> Result<(), Error> {
    let watch = move || {
        while !ended(&parent, None) {}
        let _ = kill_process(getpid(), Signal::KILL);
    };
    std::thread::Builder::new()
        .name("cartwheel-parent-watch".to_owned())
        .stack_size(64 * 1024)
        .spawn(watch)
        .map(drop)
        .map_err(|source| Error::Os { doing: "watching the parent process".to_owned(), source })
}
