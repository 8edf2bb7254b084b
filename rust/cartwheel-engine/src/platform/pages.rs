//! Ranges of memory, private or shared, between two pages that cannot be accessed: a stray write past
//! either end is a segmentation fault at once, and never reaches the next mapping.
#![expect(unsafe_code, reason = "maps memory, see the invariants of the module")]

use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// The access that a mapping of shared memory allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading; a write is a segmentation fault.
    Read,
    /// Reading and writing.
    Write,
}

/// The memory behind a mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behind<'a> {
    /// Private memory, of which the system provides a page when it is first written.
    Nothing,
    /// Shared memory.
    Shared(&'a OwnedFd, Access),
}

pub(super) const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// The system need not set aside memory for all of a mapping. Only some systems have this flag; the others
/// never do, or always.
#[cfg(target_os = "linux")]
pub(super) const NORESERVE: MapFlags = MapFlags::NORESERVE;
#[cfg(not(target_os = "linux"))]
pub(super) const NORESERVE: MapFlags = MapFlags::empty();

/// Addresses that `bytes` bytes and their guard pages take up; `None` when the address space is too
/// small.
fn reserved(bytes: usize) -> Option<usize> {
    let page = rustix::param::page_size();
    bytes.checked_next_multiple_of(page)?.checked_add(2 * page)
}

/// Maps `bytes` bytes, at least one, and a guard page on either side.
pub(crate) fn map(bytes: usize, behind: Behind<'_>) -> io::Result<NonNull<u8>> {
    let guard = rustix::param::page_size();
    let all = reserved(bytes).ok_or(Errno::NOMEM)?;
    let flags = MapFlags::PRIVATE | NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let first = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags)
    }?;
    let start = first.wrapping_byte_add(guard);
    let mapped = match behind {
        Behind::Nothing => {
            let flags = flags | MapFlags::FIXED;
            // SAFETY: replaces a part of a reservation that no other code knows (invariant 1).
            unsafe { rustix::mm::mmap_anonymous(start, bytes, READ_WRITE, flags) }
        }
        Behind::Shared(descriptor, access) => {
            let protection = if access == Access::Read { ProtFlags::READ } else { READ_WRITE };
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: replaces a part of a reservation that no other code knows (invariant 1).
            unsafe { rustix::mm::mmap(start, bytes, protection, flags, descriptor, 0) }
        }
    };
    if let Err(error) = mapped {
        // SAFETY: mapped above, and no other code knows the address.
        let _ = unsafe { rustix::mm::munmap(first, all) };
        return Err(error.into());
    }
    // SAFETY: the range was just mapped.
    unsafe { keep_out_of_core_dumps(start, bytes) };
    Ok(NonNull::new(start.cast()).expect("mmap never maps at address zero"))
}

/// Unmaps what [`map`] has mapped.
///
/// # Safety
///
/// `start` is the result of [`map`] for this number of bytes, was not unmapped, and nothing points into
/// the range any longer (invariant 1).
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    let first = start.as_ptr().cast::<c_void>().wrapping_byte_sub(rustix::param::page_size());
    let all = reserved(bytes).expect("it was reserved");
    // SAFETY: the caller owns the whole reservation (invariant 1).
    let unmapped = unsafe { rustix::mm::munmap(first, all) };
    debug_assert!(unmapped.is_ok(), "a mapping is unmapped once");
}

/// Gives the whole pages of a range back to the system, where it can take them: their bytes are zeros
/// from now on, for shared memory in every process.
///
/// # Safety
///
/// The caller has mapped the range (invariant 1), and no process reads it before it was written again.
pub(crate) unsafe fn give_back_pages(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let page = rustix::param::page_size();
        let first = start
            .as_ptr()
            .cast::<c_void>()
            .wrapping_byte_add(start.addr().get().wrapping_neg() % page);
        let whole = bytes.saturating_sub(first.addr() - start.addr().get()) / page * page;
        if whole == 0 {
            return;
        }
        // SAFETY: the pages are in the caller's range, whose contents are not needed.
        let removed = unsafe { madvise(first, whole, Advice::LinuxRemove) };
        if removed.is_err() {
            // Private memory has no file from which to remove pages.
            // SAFETY: the pages are in the caller's range, whose contents are not needed.
            let _ = unsafe { madvise(first, whole, Advice::LinuxDontNeed) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// Keeps a range out of core dumps, where the system takes such advice.
///
/// # Safety
///
/// The caller has mapped it (invariant 1).
pub(super) unsafe fn keep_out_of_core_dumps(start: *mut c_void, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let advice = rustix::mm::Advice::LinuxDontDump;
        // SAFETY: the range is mapped, and the advice changes no contents (invariant 1).
        let advised = unsafe { rustix::mm::madvise(start, bytes, advice) };
        let _ = advised; // a core dump that is too large is not an error
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}
