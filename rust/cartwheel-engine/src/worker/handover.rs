//! Handover of a shard's queue between the threads of a thread pool.
//!
//! A thread that finds a queue that is not empty locks its shard, if no other thread holds the lock, and
//! empties the queue. A thread that leaves a shard checks its queue once more: a pusher whose thread found
//! the shard locked relies on that. Two fences make sure that one of the two threads sees the other: the
//! entry was pushed before the lock was tried, and the lock was released before the last check.

use std::sync::TryLockError;

use crate::sync::{Mutex, Ordering, fence};

/// Empties the queue of a shard, unless another thread does so or `stop` returns `true`; `stop` gets the
/// number of rows taken so far, and `perform` returns how many more it took. Adds the number of rows that
/// were taken to `taken`, and returns the sum.
///
/// A shard that was closed is `None`: its rows stay in the queue.
pub(super) fn empty_queue<T>(
    shard: &Mutex<Option<T>>,
    mut taken: usize,
    is_empty: impl Fn() -> bool,
    stop: impl Fn(usize) -> bool,
    mut perform: impl FnMut(&mut T) -> usize,
) -> usize {
    while !is_empty() && !stop(taken) {
        fence(Ordering::SeqCst); // the push comes before the lock is tried; see above
        let mut locked = match shard.try_lock() {
            Ok(locked) => locked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return taken,
        };
        let Some(own) = locked.as_mut() else { return taken };
        while !stop(taken) {
            match perform(own) {
                0 => break,
                rows => taken += rows,
            }
        }
        drop(locked);
        fence(Ordering::SeqCst); // the lock's release comes before the last check; see above
    }
    taken
}

#[cfg(all(loom, test))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::protocol::interleavings::Words;
    use crate::wake::every_interleaving;

    /// A shard whose rows are in the queue of worker 0.
    struct ThreadPool {
        words: Arc<Words>,
        shard: Mutex<Option<()>>,
    }

    impl ThreadPool {
        /// Looks for rows, as each thread of the thread pool does.
        fn help(&self) {
            let is_empty = || self.words.queue(0).is_empty();
            let perform = |(): &mut ()| self.words.deliver(0, 1);
            empty_queue(&self.shard, 0, is_empty, |_| false, perform);
        }
    }

    #[test]
    fn rows_that_were_pushed_while_another_thread_left_their_shard_are_not_forgotten() {
        every_interleaving(|| {
            let thread_pool =
                Arc::new(ThreadPool { words: Words::new(2, 2, 1), shard: Mutex::new(Some(())) });
            thread_pool.words.batches().open(0, 0);
            thread_pool.words.send_rows(0, 0..1, 7, Some(0));
            let other = thread::spawn({
                let thread_pool = Arc::clone(&thread_pool);
                move || thread_pool.help()
            });
            thread_pool.words.send_rows(0, 1..2, 8, Some(1));
            thread_pool.help();
            other.join().expect("a thread of the thread pool");
            assert!(thread_pool.words.queue(0).is_empty(), "one of the threads took every row");
            assert_eq!([0, 1].map(|place| thread_pool.words.place(place)), [7, 8]);
        });
    }
}
