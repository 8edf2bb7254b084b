//! Every other Unix, and Linux for tests: what POSIX has.
//!
//! macOS sets no memory aside: it lends what it has not, for private memory as for shared, and kills a
//! process where it runs short. So there is no error for [`reserve`] to report.
#![expect(unsafe_code, reason = "replaces mapped memory, see the invariants of the module")]

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::mm::MapFlags;

pub(crate) use super::by_id::{ById as Process, wait_for_parent};
use super::pages::{NORESERVE, READ_WRITE, keep_out_of_core_dumps};
use super::{Scope, poll, shm};

/// The name of this implementation.
pub const NAME: &str = "portable";

/// Whether other threads may read memory while it is made private. Here they might read zeros.
///
/// So a pool that is closed does not make its memory private: arrays that outlive it are shared with
/// children that are forked later, and with no other process.
pub(crate) const MAKES_PRIVATE_AT_ONCE: bool = false;

/// The id of this process. On macOS a load: the C library keeps it.
pub fn process_id() -> u32 {
    std::process::id()
}

/// Sleeps while `word` is `expected`, for at most `timeout`. May return early.
pub(crate) fn wait(word: &AtomicU32, _scope: Scope, expected: u32, timeout: Duration) {
    poll::word(word, expected, timeout);
}

/// No sleeper has to be woken: every one looks at its word.
pub(crate) fn wake(_word: &AtomicU32, _scope: Scope) {}

/// Sleeps until `is_over`, for at most `timeout`. Does not look at the event count: it changes when others
/// are woken, too, and each look at a changed word would make the next intervals short again.
pub(crate) fn sleep(
    _word: &AtomicU32,
    _scope: Scope,
    _seen: u32,
    _bit: u32,
    timeout: Duration,
    is_over: impl FnMut() -> bool,
) {
    poll::until(timeout, is_over);
}

/// As [`wake`].
pub(crate) fn wake_up(_word: &AtomicU32, _scope: Scope, _bits: u32) {}

/// Makes shared memory of `bytes` zeros.
pub(crate) fn make_shared(_name: &str, bytes: usize) -> io::Result<OwnedFd> {
    shm::make(held_bytes(bytes))
}

/// The bytes of shared memory that was made for `bytes` bytes: whole pages, which is what macOS makes
/// of any size.
pub(crate) fn held_bytes(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(rustix::param::page_size()).unwrap_or(bytes)
}

/// Makes sure that `range` of shared memory is backed by memory, where the system can.
#[cfg_attr(not(target_os = "linux"), expect(clippy::unnecessary_wraps, reason = "Linux can fail"))]
pub(crate) fn reserve(shared: &OwnedFd, range: Range<usize>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::io::retry_on_intr(|| {
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(shared, flags, range.start as u64, range.len() as u64)
    })?;
    #[cfg(not(target_os = "linux"))]
    let _ = (shared, range);
    Ok(())
}

/// Does nothing: the memory goes with the last mapping of it.
pub(crate) fn give_back(_shared: &OwnedFd) {}

/// Makes a mapping of shared memory private to this process, at the same address and with the same
/// contents in its first `used` bytes. Only these have memory.
///
/// # Safety
///
/// The mapping is the caller's (invariant 1), this process waits for nothing that another one writes to
/// it, and no other thread of it reads the range meanwhile (invariant 2).
pub(crate) unsafe fn make_private(
    start: NonNull<u8>,
    bytes: usize,
    used: usize,
    _shared: &OwnedFd,
) -> io::Result<()> {
    let mut copy = Vec::<u8>::new();
    copy.try_reserve_exact(used)?;
    // SAFETY: `used` bytes are in the mapping and in the vector. Other processes may write some of them
    // meanwhile; any value will do there (invariant 2).
    unsafe { start.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr(), used) };
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | NORESERVE;
    let address = start.as_ptr().cast();
    // If the system refused this, the contents would be lost, so everything that may fail comes before.
    // SAFETY: replaces the whole mapping; every pointer stays valid (invariant 1).
    unsafe { rustix::mm::mmap_anonymous(address, bytes, READ_WRITE, flags) }?;
    // SAFETY: it was just mapped (invariant 1).
    unsafe { keep_out_of_core_dumps(address, bytes) };
    // SAFETY: `used` bytes are in the vector and in the mapping, which is private now.
    unsafe { start.as_ptr().copy_from_nonoverlapping(copy.as_ptr(), used) };
    Ok(())
}

/// Does nothing: POSIX has no such call, and macOS no such choice.
pub(crate) fn pin_to_cpu(_cpu: usize) {}

/// Does nothing, likewise.
pub(crate) fn move_to_cpu(_cpu: usize, _cpus: usize) {}
