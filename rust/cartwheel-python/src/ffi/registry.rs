//! The pools that compiled functions know, by number.
//!
//! A compiled function has a number only, and the registry does not keep a pool alive. A number is never
//! used again, since the function may outlive its pool.
//!
//! XLA's threads read the registry without the interpreter, so a fork can come while one does, and no
//! thread of the child would release the lock. The thread that forks holds it meanwhile. Nothing is called
//! while it is held, so this waits for no more than a few instructions of another thread.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};

use pyo3::prelude::*;

use crate::pool::{Exclusive, PyPool};

type Pools = BTreeMap<i64, Weak<Exclusive>>;

static POOLS: RwLock<Pools> = RwLock::new(BTreeMap::new());
static NEXT: AtomicI64 = AtomicI64::new(1);

thread_local! {
    /// In a thread that forks.
    static HELD: Cell<Option<RwLockWriteGuard<'static, Pools>>> = const { Cell::new(None) };
}

/// Takes the lock; the C library calls it right before each fork, once.
pub(crate) extern "C" fn before_fork() {
    let held = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    // A thread that is ending and has no such variable any more forks without it.
    let _without = HELD.try_with(|cell| cell.set(Some(held)));
}

/// Releases it; called right after the fork, by the same thread, in both processes.
pub(crate) extern "C" fn after_fork() {
    let _without = HELD.try_with(Cell::take);
}

#[pyfunction]
pub(crate) fn register_pool(pool: &Bound<'_, PyPool>) -> i64 {
    let exclusive = pool.get().exclusive();
    let number = exclusive.number(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|_, pool| pool.strong_count() > 0);
    pools.insert(number, Arc::downgrade(exclusive));
    number
}

pub(super) fn pool(number: i64) -> Option<Arc<Exclusive>> {
    POOLS.read().unwrap_or_else(PoisonError::into_inner).get(&number)?.upgrade()
}
