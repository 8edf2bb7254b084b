//! Worker processes: detecting whether the other side is still alive.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::Pid;

use crate::error::Error;
use crate::platform::{self, Process, kill_this_process};

/// A pool's handle to one worker process.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: u32,
    /// `None` for a process that was never started.
    process: Option<Process>,
}

impl ProcessHandle {
    /// The process with this id, which must be alive or not yet reaped.
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when the process does not exist, or no descriptor is left.
    pub fn new(pid: u32) -> Result<Self, Error> {
        let process = Process::watch(process_id_of(pid)?)
            .map_err(Error::os(format!("watching worker process {pid}")))?;
        Ok(Self { pid, process: Some(process) })
    }

    /// A worker process that is started later: until then it counts as dead, with process id 0.
    pub fn absent() -> Self {
        Self { pid: 0, process: None }
    }

    /// Whether there was ever such a process.
    pub(crate) fn was_started(&self) -> bool {
        self.process.is_some()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        !self.wait(Duration::ZERO)
    }

    /// Waits until the process ends, for at most `timeout`; returns whether it ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.process.as_ref().is_none_or(|process| process.wait(timeout))
    }

    /// Kills the process.
    pub fn kill(&self) {
        if let Some(process) = &self.process {
            process.kill();
        }
    }
}

/// Kills this process as soon as the process `parent`, which started it, has ended or executes another
/// program.
///
/// `lifeline` is the end for reading of a pipe, whose other end that process keeps open until then, but
/// for programs that it executes. Without it, a parent that executes another program counts as alive, and
/// on systems without pidfds so does one that is not this process's own, until its parent has waited for
/// it.
///
/// A separate thread watches, so that this works whatever the environments do. It kills the process
/// with SIGKILL, because an orderly exit could wait for a hung environment.
///
/// # Errors
///
/// [`Error::BadPlan`] when `parent` is not a process id, [`Error::Os`] when the thread cannot be started.
pub fn exit_with_parent(parent: u32, lifeline: Option<OwnedFd>) -> Result<(), Error> {
    let id = process_id_of(parent)?;
    let watch = move || {
        platform::wait_for_parent(id, lifeline.as_ref());
        kill_this_process();
    };
    std::thread::Builder::new()
        .name("cartwheel-parent-watch".to_owned())
        .stack_size(64 * 1024)
        .spawn(watch)
        .map(drop)
        .map_err(Error::os("watching the parent process"))
}

fn process_id_of(number: u32) -> Result<Pid, Error> {
    platform::pid(number).ok_or_else(|| Error::BadPlan(format!("{number} is not a process id")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_is_too_long_to_be_a_time_has_no_limit() {
        let mut child = std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert!(ProcessHandle::new(child.id()).unwrap().wait(Duration::MAX));
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}
