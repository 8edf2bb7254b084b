//! Worker processes for tests: the test program itself, which runs one of its ignored tests.
#![expect(unsafe_code, reason = "shares memory with worker processes")]

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::parent_id;
use std::process::{Command, Stdio};

use cartwheel_engine::memory::Plan;
use cartwheel_engine::protocol::{Memory, WorkerToken};
use cartwheel_engine::worker::exit_with_parent;

/// The environment variable with the number of a worker process and its descriptors.
const WORKER: &str = "CARTWHEEL_TEST_WORKER";

/// A command that runs the ignored test `test`, which is named with its module, in a new process.
pub(crate) fn ignored_test(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]).stdout(Stdio::null());
    command
}

/// A command that runs the ignored test `test` as worker `worker` of this memory.
pub(crate) fn worker(test: &str, memory: &Memory, worker: usize) -> Command {
    // SAFETY: the worker process attaches them.
    let descriptors = unsafe { memory.descriptors() }.unwrap();
    let [control, actions, infos, slabs] = descriptors.map(|descriptor| descriptor.as_raw_fd());
    let mut command = ignored_test(test);
    command.env(WORKER, format!("{worker} {control} {actions} {infos} {slabs}"));
    command
}

/// In such a process: the token of the worker. The process ends with its parent.
pub(crate) fn attach(plan: Plan) -> WorkerToken {
    let given = std::env::var(WORKER).unwrap();
    let mut numbers = given.split(' ');
    let worker = numbers.next().unwrap().parse().unwrap();
    let pool = parent_id();
    exit_with_parent(pool, None).unwrap();
    let descriptors = [(); 4].map(|()| {
        let path = format!("/proc/{pool}/fd/{}", numbers.next().unwrap());
        OwnedFd::from(OpenOptions::new().read(true).write(true).open(path).unwrap())
    });
    // SAFETY: they are those of the parent's memory, see `worker`. The tests use no token of a worker
    // for which they start a process, and start the next one when they have waited for its end.
    unsafe { WorkerToken::attach(plan, descriptors, worker) }.unwrap()
}
