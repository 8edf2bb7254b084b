//! Threads of this process, which forked children do not have.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::platform::process_id;

/// A thread that this process started.
///
/// A forked child has a copy of this and no such thread: to detach or to join it there would reach into
/// memory that the child has given back.
#[derive(Debug)]
pub struct OwnThread {
    /// `None` once joined or left alone.
    handle: Option<JoinHandle<()>>,
    owner: u32,
}

impl OwnThread {
    /// Starts a thread.
    ///
    /// # Errors
    ///
    /// The system starts no more threads.
    pub fn start(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let handle = Some(Builder::new().name(name).spawn(run)?);
        Ok(Self { handle, owner: process_id() })
    }

    /// Whether this process started it.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.owner == process_id()
    }

    /// Whether it has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end; returns at once in a forked child.
    pub fn join(mut self) {
        if self.is_of_this_process()
            && let Some(handle) = self.handle.take()
        {
            let _ = handle.join(); // a panic was reported by the thread
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            std::mem::forget(self.handle.take());
        }
    }
}
