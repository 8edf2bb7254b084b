//! The locks of this crate at forks.
//!
//! Threads take them without Python's interpreter, so a fork can come while one is held, and no thread of
//! the child would release it. The thread that forks holds all of them meanwhile. Nothing is called while
//! one is held, so this waits for no more than a few instructions of another thread.

use std::cell::Cell;
use std::sync::MutexGuard;

use crate::guard::{Installed, installed};
use crate::registry::{Registry, registry};

type Held = (MutexGuard<'static, Registry>, MutexGuard<'static, Option<Installed>>);

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Takes the locks; the program calls it right before each fork, once.
pub extern "C" fn before_fork() {
    let held = (registry(), installed());
    // A thread that is ending and has no such variable any more forks without them.
    let _without = HELD.try_with(|cell| cell.set(Some(held)));
}

/// Releases them; called right after the fork, by the same thread, in both processes.
pub extern "C" fn after_fork() {
    let _without = HELD.try_with(Cell::take);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{guard, registry};

    fn in_another_thread<T: Send>(look: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(look).join().expect("it does not panic"))
    }

    #[test]
    fn no_other_thread_holds_a_lock_at_a_fork() {
        for _ in 0..2 {
            before_fork();
            let during = in_another_thread(|| [registry::is_free(), guard::is_free()]);
            after_fork();
            assert_eq!(during, [false, false]);
            in_another_thread(|| drop((registry::registry(), guard::installed())));
        }
    }
}
