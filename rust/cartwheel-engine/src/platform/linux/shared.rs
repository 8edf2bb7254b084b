//! Shared memory: memfds.
//!
//! A `memfd` has no name, so nothing is left behind when a process is killed, and the size of
//! `/dev/shm` does not limit it. It is sealed against shrinking and growing, so no process can cause a
//! SIGBUS in another one. It is reserved with `fallocate` before use, so a shortage is an error instead
//! of a signal.
#![expect(unsafe_code, reason = "replaces mapped memory, see the invariants of the module")]

#[cfg(rustix_use_libc)]
use std::ffi::c_int;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, MremapFlags};

use super::super::pages::{READ_WRITE, keep_out_of_core_dumps};
use super::super::shm;
use super::is_missing;

/// Whether other threads may read memory while it is made private.
pub(crate) const MAKES_PRIVATE_AT_ONCE: bool = true;

/// Makes shared memory of `bytes` zeros. `name` appears in `/proc/*/maps`.
pub(crate) fn make_shared(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags)); // before Linux 6.3
    let descriptor = match made {
        Err(error) if is_missing(error) => return without_memfd(bytes),
        made => made?,
    };
    rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::ftruncate(&descriptor, bytes as u64)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&descriptor, seals)?;
    Ok(descriptor)
}

fn without_memfd(bytes: usize) -> io::Result<OwnedFd> {
    shm::make(bytes).map_err(|error| {
        let message = format!(
            "worker processes need the system call memfd_create (Linux 3.17 or newer, and no seccomp \
             filter that forbids it) or a writable /dev/shm ({error}); allow one of them, or use \
             threads instead of processes"
        );
        io::Error::new(error.kind(), message)
    })
}

/// The bytes of shared memory that was made for `bytes` bytes.
pub(crate) fn held_bytes(bytes: usize) -> usize {
    bytes
}

/// Makes sure that `range` of shared memory is backed by memory.
pub(crate) fn reserve(shared: &OwnedFd, range: Range<usize>) -> io::Result<()> {
    let (start, bytes) = (range.start as u64, range.len() as u64);
    let fallocate = || rustix::fs::fallocate(shared, FallocateFlags::empty(), start, bytes);
    Ok(rustix::io::retry_on_intr(fallocate)?)
}

/// Gives shared memory back to the system, even if workers map it, but for a last page that is not whole: its
/// bytes are zeros from now on.
pub(crate) fn give_back(shared: &OwnedFd) {
    let bytes = rustix::fs::fstat(shared).map_or(0, |status| status.st_size.cast_unsigned());
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // Where the system refuses, the memory goes with the last mapping of it.
    let _ = rustix::fs::fallocate(shared, flags, 0, bytes);
}

/// Makes a mapping of `shared` private to this process, at the same address and with the same
/// contents.
///
/// # Safety
///
/// The mapping is the caller's (invariant 1), and this process waits for nothing that another one
/// writes to it (invariant 2).
pub(crate) unsafe fn make_private(
    start: NonNull<u8>,
    bytes: usize,
    _used: usize,
    shared: &OwnedFd,
) -> io::Result<()> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // The copy is mapped elsewhere first: if mapping over the old range failed, its contents would be
    // lost.
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let copy =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, READ_WRITE, flags, shared, 0) }?;
    let start = start.as_ptr().cast();
    // SAFETY: both ranges are whole mappings that this code owns, of the same length and contents; the
    // kernel replaces one with the other in one step, so every pointer stays valid (invariants 1 and
    // 2).
    let moved = unsafe { move_over(start, copy, bytes) };
    if let Err(error) = moved {
        // SAFETY: mapped above, and no other code knows the address.
        let _ = unsafe { rustix::mm::munmap(copy, bytes) };
        return Err(error);
    }
    // SAFETY: it was just mapped; the advice has to be repeated for a new mapping (invariant 1).
    unsafe { keep_out_of_core_dumps(start, bytes) };
    Ok(())
}

/// Moves the mapping `from` to `start`, over the mapping that is there.
///
/// # Safety
///
/// Both are whole mappings of `bytes` that are the caller's.
#[cfg(not(rustix_use_libc))]
unsafe fn move_over(start: *mut c_void, from: *mut c_void, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::mremap_fixed(from, bytes, bytes, MremapFlags::MAYMOVE, start) }?;
    Ok(())
}

/// Likewise, where rustix calls libc, for the sanitizers: rustix 1.1 passes it the flag `MAP_FIXED` in
/// place of `MREMAP_FIXED`, which is `EINVAL`.
#[cfg(rustix_use_libc)]
unsafe fn move_over(start: *mut c_void, from: *mut c_void, bytes: usize) -> io::Result<()> {
    unsafe extern "C" {
        fn mremap(from: *mut c_void, old: usize, new: usize, flags: c_int, ...) -> *mut c_void;
    }
    const FIXED: c_int = 2;
    let flags = MremapFlags::MAYMOVE.bits().cast_signed() | FIXED;
    // SAFETY: the caller's promise.
    let moved = unsafe { mremap(from, bytes, bytes, flags, start) };
    if moved == start { Ok(()) } else { Err(io::Error::last_os_error()) }
}
