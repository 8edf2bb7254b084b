//! MuJoCo's profiling clock, which stands still in our calls.
//!
//! MuJoCo reads a clock many times in each step, for `mjData.timer`, if there is one in its variable
//! `mjcb_time`. Its module for Python puts one there, which takes a third of a step of a small model.
//! While a model lives, ours is there: 0 in a guarded call, and elsewhere the one that was there.
//! Nothing but `mjData.timer` of our rows depends on it.
//!
//! # Invariants
//!
//! 1. **Clocks.** MuJoCo's variable holds a function of this type, or null. It checks for null before
//!    it calls, perhaps on another thread, so null is never put in.
#![expect(unsafe_code, reason = "a clock that C calls, see the invariants")]

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

thread_local! {
    /// Whether this thread is within a guarded call; set by the guard.
    pub(crate) static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

type Clock = unsafe extern "C-unwind" fn() -> f64;

/// Our clock: one address, wherever it is read.
static OURS: Clock = time;

/// The clock that was there before ours, from the first time that ours was put in.
static BEFORE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C-unwind" fn time() -> f64 {
    if IS_GUARDED.get() {
        return 0.0;
    }
    // SAFETY: a clock, or null (invariant 1).
    let before = unsafe { transmute::<*mut c_void, Option<Clock>>(BEFORE.load(Acquire)) }; // pairs with `put_in`
    // SAFETY: as MuJoCo would call it (invariant 1).
    before.map_or(0.0, |before| unsafe { before() })
}

/// Puts our clock in, if there is one.
pub(crate) fn put_in(variable: &AtomicPtr<c_void>) {
    let (ours, found) = (OURS as *mut c_void, variable.load(Acquire));
    if !found.is_null() && found != ours {
        // `Release` pairs with the `Acquire` in `time`: ours finds the clock to call, because the
        // exchange, which puts ours in, comes after this store.
        BEFORE.store(found, Release);
        let _replaced = variable.compare_exchange(found, ours, AcqRel, Acquire);
    }
}

/// Puts the clock back that was there, unless it was replaced.
pub(crate) fn put_back(variable: &AtomicPtr<c_void>) {
    let _replaced =
        variable.compare_exchange(OURS as *mut c_void, BEFORE.load(Acquire), AcqRel, Acquire);
}
