//! Processes that are known by their id alone.
//!
//! A child that has ended keeps its id until its parent has waited for it, and looking at it here does
//! not wait for it: `multiprocessing` does. Any other process is looked for by a signal that is not
//! sent.
//!
//! # What this cannot see
//!
//! The system gives the id of a process that has ended, and was waited for, to another one some day.
//! Between two looks, 50 ms apart, that takes tens of thousands of new processes. If it happens, the
//! other process is taken for the one that ended. A process whose end was seen once is never
//! looked for or killed again.
//!
//! A process that is not our child counts as alive until its parent has waited for it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, test_kill_process, waitid,
};

use super::poll as intervals;

/// The time between two looks for a parent.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The process id `id`, if it can be one.
pub(crate) fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// A process, watched by its id.
#[derive(Debug)]
pub(crate) struct ById {
    pid: Pid,
    ended: AtomicBool,
}

impl ById {
    /// Watches a process that is alive, or that has not been waited for.
    pub(crate) fn watch(pid: Pid) -> io::Result<Self> {
        let process = Self { pid, ended: AtomicBool::new(false) };
        if is_gone(pid) { Err(Errno::SRCH.into()) } else { Ok(process) }
    }

    /// Waits until the process ends, for at most `timeout`; returns whether it ended.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        intervals::until(timeout, || self.has_ended())
    }

    /// Kills the process, unless it has ended.
    pub(crate) fn kill(&self) {
        if !self.has_ended() {
            // It may end in the meantime, which is fine.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    fn has_ended(&self) -> bool {
        if !self.ended.load(Ordering::Relaxed) && has_ended(self.pid) {
            self.ended.store(true, Ordering::Relaxed);
        }
        self.ended.load(Ordering::Relaxed)
    }
}

/// Whether there is no such process, or it is a child of this one that has ended.
fn has_ended(pid: Pid) -> bool {
    // `NOWAIT`: the process that started the child still gets its exit code.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options)) {
        Ok(status) => status.is_some(),
        Err(_) => is_gone(pid), // not a child
    }
}

fn is_gone(pid: Pid) -> bool {
    // Any other error concerns a process that exists.
    test_kill_process(pid) == Err(Errno::SRCH)
}

/// Returns when the process `pid` has ended, which started this one and gave it `lifeline`, or when the
/// other end of `lifeline` is closed: a process loses its descriptors when it ends, also while no other
/// process has waited for it.
///
/// A child notices that it has no parent any more. With the start method `forkserver` a process in between
/// is the parent, and the lifeline ends, unless a fork of the program holds its other end, too. Then
/// the process is looked for by its id.
pub(crate) fn wait_for_parent(pid: Pid, lifeline: Option<&OwnedFd>) {
    let is_parent = getppid() == Some(pid);
    // The first process adopts children the moment that their parent ends. Another new parent may be a
    // debugger.
    let is_orphan = || is_parent && getppid() != Some(pid) && getppid() == Some(Pid::INIT);
    while !is_orphan() && !is_gone(pid) {
        match lifeline {
            Some(lifeline) if has_hung_up(lifeline) => return,
            Some(_) => {}
            None => std::thread::sleep(BETWEEN_LOOKS),
        }
    }
}

/// Whether the other end is closed; waits for that until it is time for another look.
fn has_hung_up(lifeline: &OwnedFd) -> bool {
    let limit = Timespec::try_from(BETWEEN_LOOKS).expect("a short time");
    let mut fds = [PollFd::new(lifeline, PollFlags::IN)]; // nothing is ever written
    poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0)
}

pub(crate) fn kill_this_process() {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Stops this process until it gets SIGCONT.
#[cfg(feature = "failpoints")]
pub(crate) fn stop_this_process() {
    let _ = kill_process(getpid(), Signal::STOP);
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A shell that runs `script`.
    fn shell(script: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("there is a shell")
    }

    #[test]
    fn a_child_that_has_ended_is_noticed_and_its_exit_code_is_left_to_its_parent() {
        let mut child = shell("exit 7");
        let process = ById::watch(pid(child.id()).expect("a process id")).expect("alive or ended");
        assert!(process.wait(LONG));
        assert_eq!(child.wait().expect("it is still there").code(), Some(7));
        assert!(process.wait(Duration::ZERO));
        process.kill(); // kills no process: the id may be another one's by now
    }

    #[test]
    fn a_living_process_is_alive_until_it_is_killed_whosever_child_it_is() {
        let mut parent = shell("sleep 600 & echo $!; wait; exec sleep 600");
        let mut line = String::new();
        let output = parent.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let grandchild = line.trim().parse().expect("a process id");
        for id in [grandchild, parent.id()] {
            let process = ById::watch(pid(id).expect("a process id")).expect("alive");
            assert!(!process.wait(Duration::from_millis(1)));
            process.kill();
            assert!(process.wait(LONG), "{id}");
        }
        parent.wait().expect("it is still there");
        let gone = pid(grandchild).expect("a process id");
        assert_eq!(ById::watch(gone).err().and_then(|error| error.raw_os_error()), Some(3));
    }
}
