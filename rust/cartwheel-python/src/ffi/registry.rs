//! The pools that compiled functions know, by number.
//!
//! A compiled function has a number only, and the registry does not keep a pool alive. A number is never
//! used again, since the function may outlive its pool.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use pyo3::prelude::*;

use crate::pool::{Exclusive, PyPool};

static POOLS: RwLock<BTreeMap<i64, Weak<Exclusive>>> = RwLock::new(BTreeMap::new());
static NEXT: AtomicI64 = AtomicI64::new(1);

/// The number of a pool; documented in the stub.
#[pyfunction]
pub(crate) fn register_pool(pool: &Bound<'_, PyPool>) -> i64 {
    let exclusive = pool.get().exclusive();
    let number = exclusive.number(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let mut pools = POOLS.write().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|_, pool| pool.strong_count() > 0);
    pools.insert(number, Arc::downgrade(exclusive));
    number
}

/// The pool of a number, if it is still there.
pub(super) fn pool(number: i64) -> Option<Arc<Exclusive>> {
    POOLS.read().unwrap_or_else(PoisonError::into_inner).get(&number)?.upgrade()
}
