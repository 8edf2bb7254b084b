//! Wake-ups of a pool that waits in [`Pool::receive_ready`](super::Pool::receive_ready), by other threads.

use crate::protocol::{Control, Memory};
use crate::wake::{Futex, Scope, WakeRequest};

/// Ends the present or next wait in [`Pool::receive_ready`](super::Pool::receive_ready), from any thread.
#[derive(Debug)]
pub struct Waker {
    request: WakeRequest,
    control: Control,
    scope: Scope,
}

impl Waker {
    pub(super) fn new(memory: &Memory) -> Self {
        let (control, scope) = (memory.control.clone(), memory.scope());
        Self { request: WakeRequest::default(), control, scope }
    }

    /// Wakes the pool. Several wake-ups before a wait end that wait alone.
    pub fn wake(&self) {
        self.request.make(&Futex::new(&self.control.header().doorbell, self.scope));
    }

    /// Whether the pool was woken since the last wait ended.
    pub(super) fn has_woken(&self) -> bool {
        self.request.is_made()
    }

    pub(super) fn take(&self) {
        self.request.take();
    }
}
