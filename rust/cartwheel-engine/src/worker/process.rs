//! Worker processes: detecting whether the other side is still alive.
//!
//! A pidfd becomes readable when its process ends, regardless of which process started or reaps it,
//! and a recycled process id never confuses it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::error::Error;
use crate::memory::process_id;

/// A pool's handle to one worker process.
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
    /// [`Error::Os`] when the process does not exist, or no descriptor is left.
    pub fn new(pid: u32) -> Result<Self, Error> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let raw = raw.ok_or_else(|| Error::BadPlan(format!("{pid} is no process id")))?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty())
            .map_err(Error::os(format!("watching worker process {pid}")))?;
        Ok(Self { pid, pidfd })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has not ended.
    pub fn is_alive(&self) -> bool {
        !ended(&self.pidfd, Some(Duration::ZERO))
    }

    /// Waits until the process ends, for at most `timeout`; returns whether it ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        ended(&self.pidfd, Some(timeout))
    }

    /// Kills the process.
    pub fn kill(&self) {
        // It may have ended in the meantime, which is fine.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

/// How long a killed process may take to disappear.
const DYING: Duration = Duration::from_secs(1);

/// Whether no process with this id exists, or it is a zombie or about to end. False where that
/// cannot be determined.
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
            Err(Errno::INTR) => {} // a handled signal says nothing about the process
            polled => return polled.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Kills this process as soon as the process behind `parent`, a pidfd, has ended.
///
/// A separate thread watches, so that this works whatever the environments do. It kills the process
/// with SIGKILL, because an orderly exit could wait for a hung environment.
///
/// # Errors
///
/// [`Error::Os`] when the thread cannot be started.
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
