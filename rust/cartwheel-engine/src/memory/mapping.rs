//! A range of memory, private or shared, that never moves.
//!
//! Shared memory is a `memfd`: it has no name, so nothing is left behind when a process is killed,
//! and the size of `/dev/shm` does not limit it. It is sealed against shrinking and growing, so no
//! process can cause a SIGBUS in another one. It is reserved with `fallocate` before use, so a
//! shortage is an error instead of a signal.
//!
//! Before and behind every mapping there is a page that cannot be accessed: a stray write past
//! either end is a segmentation fault at once, and never reaches the next mapping.
#![expect(unsafe_code, reason = "maps memory and copies through raw pointers, see the invariants")]

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

use crate::error::Error;
use crate::wake::Scope;

/// The access that an attached mapping allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading; a write is a segmentation fault.
    Read,
    /// Reading and writing.
    Write,
}

/// The memory behind a mapping in the process that made it: the descriptor of shared memory, or
/// nothing for private memory.
///
/// It is separate from the [`Mapping`] so that a pool can close its descriptors while arrays still
/// show the memory.
#[derive(Debug)]
pub(crate) struct Backing {
    name: &'static str,
    descriptor: Option<OwnedFd>,
}

impl Backing {
    /// The descriptor of shared memory.
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// The descriptor of shared memory, moved to the caller.
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        self.descriptor
    }

    /// Another handle to the same memory.
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when the process has no descriptor left.
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        let descriptor = self.descriptor.as_ref().map(OwnedFd::try_clone).transpose();
        let descriptor = descriptor.map_err(|source| Error::Os {
            doing: format!("sharing memory ({})", self.name),
            source,
        })?;
        Ok(Self { name: self.name, descriptor })
    }

    /// Makes sure that `range` is backed by memory.
    ///
    /// Private memory needs nothing: the system provides it page by page. Callers check
    /// [`Headroom`](super::Headroom) first, because the system kills the process before it refuses.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when there is not enough, otherwise [`Error::Os`].
    pub(crate) fn reserve(&self, range: Range<usize>) -> Result<(), Error> {
        let Some(descriptor) = &self.descriptor else { return Ok(()) };
        let (start, bytes) = (range.start as u64, range.len() as u64);
        if bytes == 0 {
            return Ok(());
        }
        rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(descriptor, FallocateFlags::empty(), start, bytes)
        })
        .map_err(Error::memory(self.name, range.len()))
    }

    /// Gives shared memory back to the system, whoever maps it, but for a last page that is not whole: its bytes
    /// are zeros from now on. Private memory goes with its mapping.
    pub(crate) fn give_back(&self) {
        let Some(descriptor) = &self.descriptor else { return };
        let bytes =
            rustix::fs::fstat(descriptor).map_or(0, |status| status.st_size.cast_unsigned());
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Where the system refuses, the memory goes with the last mapping of it.
        let _ = rustix::fs::fallocate(descriptor, flags, 0, bytes);
    }
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Addresses that `bytes` bytes and their guard pages take up; `None` when the address space is too
/// small.
fn reserved(bytes: usize) -> Option<usize> {
    let page = rustix::param::page_size();
    bytes.checked_next_multiple_of(page)?.checked_add(2 * page)
}

/// Mapped memory. It starts as zeros and stays at one address until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether shared memory was made private.
    parted: AtomicBool,
}

// SAFETY: a mapping is plain memory without thread affinity; invariants 2 to 6 say which accesses
// are allowed, and when.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; `&Mapping` gives out only raw pointers and unsafe copies.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes `bytes` bytes of zeros. `name` appears in `/proc/*/maps` for shared memory.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`] when the system refuses.
    pub(crate) fn new(
        name: &'static str,
        bytes: usize,
        scope: Scope,
    ) -> Result<(Self, Backing), Error> {
        let bytes = bytes.max(1);
        let failed = Error::memory(name, bytes);
        if scope == Scope::Private {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
            let mapping = Self::between_guards(bytes, |start| {
                // SAFETY: replaces a part of a reservation that no other code knows (invariant 1).
                unsafe { rustix::mm::mmap_anonymous(start, bytes, READ_WRITE, flags) }
            });
            return Ok((mapping.map_err(failed)?, Backing { name, descriptor: None }));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| rustix::fs::memfd_create(name, flags)) // before Linux 6.3
            .map_err(failed)?;
        rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        rustix::fs::ftruncate(&descriptor, bytes as u64).map_err(failed)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals).map_err(failed)?;
        let mapping = Self::map(&descriptor, bytes, Access::Write).map_err(failed)?;
        Ok((mapping, Backing { name, descriptor: Some(descriptor) }))
    }

    /// Maps memory that another process made with [`Mapping::new`].
    ///
    /// # Safety
    ///
    /// Whoever else has the memory mapped accesses it as the invariants say.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when its size is not `bytes`, [`Error::OutOfMemory`] or [`Error::Os`] when the
    /// system refuses.
    pub(crate) unsafe fn attach(
        descriptor: OwnedFd,
        bytes: usize,
        access: Access,
    ) -> Result<Self, Error> {
        let bytes = bytes.max(1);
        let status =
            rustix::fs::fstat(&descriptor).map_err(Error::os("reading a memory's size"))?;
        let got = usize::try_from(status.st_size).unwrap_or(0);
        if got != bytes {
            return Err(Error::Mismatch { what: "size of a mapping", expected: bytes, got });
        }
        // The mapping does not need the descriptor any longer.
        Self::map(&descriptor, bytes, access).map_err(Error::memory("a worker", bytes))
    }

    fn map(descriptor: &OwnedFd, bytes: usize, access: Access) -> Result<Self, Errno> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => READ_WRITE,
        };
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        Self::between_guards(bytes, |start| {
            // SAFETY: replaces a part of a reservation that no other code knows (invariant 1).
            unsafe { rustix::mm::mmap(start, bytes, protection, flags, descriptor, 0) }
        })
    }

    /// Reserves addresses for `bytes` bytes and the two guards, and calls `map` to fill the middle.
    fn between_guards(
        bytes: usize,
        map: impl FnOnce(*mut c_void) -> Result<*mut c_void, Errno>,
    ) -> Result<Self, Errno> {
        let guard = rustix::param::page_size();
        let all = reserved(bytes).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let first = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags)
        }?;
        let start = first.wrapping_byte_add(guard);
        let start_of_bytes = NonNull::new(start.cast()).expect("mmap never maps at address zero");
        let parted = AtomicBool::new(false);
        let mapping = Self { start: start_of_bytes, bytes, parted }; // unmapped if `map` fails
        map(start)?;
        // SAFETY: the range was just mapped; keeping it out of core dumps changes no contents.
        let advised = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontDump) };
        let _ = advised; // a core dump that is too large is not an error
        Ok(mapping)
    }

    /// Makes shared memory private to this process, at the same address and with the same contents:
    /// later writes of this process stay in it. `backing` is the memory behind the mapping. A second
    /// call does nothing, so that it does not lose what was written since.
    ///
    /// # Safety
    ///
    /// This process waits for nothing that another one writes (invariant 8).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`]; the memory stays shared then.
    pub(crate) unsafe fn part(&self, backing: &Backing) -> Result<(), Error> {
        let Some(descriptor) = backing.descriptor() else { return Ok(()) };
        if self.parted.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let parted = self.replace_by_copy(descriptor);
        self.parted.store(parted.is_ok(), Ordering::Relaxed);
        parted.map_err(Error::memory(backing.name, self.bytes))
    }

    fn replace_by_copy(&self, descriptor: &OwnedFd) -> Result<(), Errno> {
        let protection = READ_WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // The copy is mapped elsewhere first: if mapping over the old range failed, its contents
        // would be lost.
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let copy = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), self.bytes, protection, flags, descriptor, 0)
        }?;
        let (start, flags) = (self.start.as_ptr().cast(), MremapFlags::MAYMOVE);
        // SAFETY: both ranges are whole mappings that this code owns, of the same length and
        // contents; the kernel replaces one with the other in one step, so every pointer stays
        // valid (invariants 1 and 8).
        let moved = unsafe { rustix::mm::mremap_fixed(copy, self.bytes, self.bytes, flags, start) };
        if let Err(error) = moved {
            // SAFETY: mapped above, and no other code knows the address.
            let _ = unsafe { rustix::mm::munmap(copy, self.bytes) };
            return Err(error);
        }
        // SAFETY: as in `between_guards`; the advice has to be repeated for a new mapping.
        let _ = unsafe { rustix::mm::madvise(start, self.bytes, Advice::LinuxDontDump) };
        Ok(())
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Address of the byte at `offset`.
    ///
    /// # Panics
    ///
    /// When `range` is not inside the mapping.
    pub(crate) fn at(&self, range: Range<usize>) -> NonNull<u8> {
        assert!(
            range.start <= range.end && range.end <= self.bytes,
            "{range:?} is not inside a mapping of {} bytes",
            self.bytes
        );
        // SAFETY: the offset is inside the mapping, which stays mapped (invariant 1).
        unsafe { self.start.add(range.start) }
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    ///
    /// No other thread or process may access the range during the call: one of invariants 4 to 6
    /// must say so.
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.at(offset..offset + bytes.len());
        // SAFETY: the target is inside the mapping and, as the caller promises, accessed by nothing
        // else; `bytes` is a live Rust slice and so cannot overlap it.
        unsafe {
            target.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Fills `range` with zeros.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::write`].
    pub(crate) unsafe fn zero(&self, range: Range<usize>) {
        let bytes = range.len();
        // SAFETY: the target is inside the mapping and, as the caller promises, accessed by nothing
        // else.
        unsafe { self.at(range).as_ptr().write_bytes(0, bytes) }
    }

    /// Copies `into.len()` bytes from `offset`.
    ///
    /// # Safety
    ///
    /// No thread or process may write the range during the call: one of invariants 4 to 6 must say
    /// so.
    pub(crate) unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        let source = self.at(offset..offset + into.len());
        // SAFETY: the source is inside the mapping and, as the caller promises, not being written;
        // `into` is a live Rust slice and so cannot overlap it.
        unsafe {
            source.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let first =
            self.start.as_ptr().cast::<c_void>().wrapping_byte_sub(rustix::param::page_size());
        let all = reserved(self.bytes).expect("it was reserved");
        // SAFETY: the mapping owns the whole reservation, and nothing borrows it any longer
        // (invariant 1).
        let unmapped = unsafe { rustix::mm::munmap(first, all) };
        debug_assert!(unmapped.is_ok(), "a mapping is unmapped once");
    }
}

#[cfg(test)]
mod tests;
