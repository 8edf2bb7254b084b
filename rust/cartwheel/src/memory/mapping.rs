//! A stretch of memory, private or shared, that never moves.
//!
//! Shared memory is a `memfd`: it has no name, so nothing is left behind whoever is killed, and it
//! is not bounded by the size of `/dev/shm`. It is sealed against shrinking and growing, so that no
//! process can turn another one's access into a SIGBUS, and reserved with `fallocate` before use,
//! so that a shortage is an error and not a signal.
//!
//! A page without any access stands before and behind every mapping: a stray write that runs off one
//! end is a segmentation fault where it happens, and never reaches the next mapping.
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

/// What an attached mapping may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading; a write is a segmentation fault.
    Read,
    /// Reading and writing.
    Write,
}

/// What stands behind a mapping in the process that made it: the descriptor of shared memory, or
/// nothing for private memory.
///
/// It is apart from the [`Mapping`] so that a pool can give up its descriptors when it closes, while
/// arrays still show the memory.
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

    /// The descriptor of shared memory, to give away.
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        self.descriptor
    }

    /// Another hold on the same.
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when there is no descriptor left.
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        let descriptor = self.descriptor.as_ref().map(OwnedFd::try_clone).transpose();
        let descriptor = descriptor.map_err(|source| Error::Os {
            doing: format!("sharing memory ({})", self.name),
            source,
        })?;
        Ok(Self { name: self.name, descriptor })
    }

    /// Makes sure that `range` has memory behind it.
    ///
    /// Private memory needs nothing: the system gives it page by page. Whoever reserves asks for
    /// [`Headroom`](super::Headroom) first: the system kills before it refuses.
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
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Addresses that `bytes` bytes take up together with their guards; `None` when there are no so many.
fn reserved(bytes: usize) -> Option<usize> {
    let page = rustix::param::page_size();
    bytes.checked_next_multiple_of(page)?.checked_add(2 * page)
}

/// Mapped memory. It starts as zeros and stays at one address until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// What it shared it shares no longer.
    parted: AtomicBool,
}

// SAFETY: a mapping is plain memory without thread affinity; what may be done through it, and
// when, is the business of invariants 2 to 6.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; `&Mapping` gives out raw pointers and unsafe copies only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes `bytes` bytes of zeros. `name` shows up in `/proc/*/maps` of shared memory.
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
                // SAFETY: replaces a part of a reservation that nobody else knows of (invariant 1).
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
    /// # Errors
    ///
    /// [`Error::Mismatch`] when its size is not `bytes`, [`Error::OutOfMemory`] or [`Error::Os`] when the
    /// system refuses.
    pub(crate) fn attach(descriptor: OwnedFd, bytes: usize, access: Access) -> Result<Self, Error> {
        let bytes = bytes.max(1);
        let status =
            rustix::fs::fstat(&descriptor).map_err(Error::os("reading a memory's size"))?;
        let got = usize::try_from(status.st_size).unwrap_or(0);
        if got != bytes {
            return Err(Error::Mismatch { what: "size of a mapping", expected: bytes, got });
        }
        // The mapping outlives its descriptor.
        Self::map(&descriptor, bytes, access).map_err(Error::memory("a worker", bytes))
    }

    fn map(descriptor: &OwnedFd, bytes: usize, access: Access) -> Result<Self, Errno> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => READ_WRITE,
        };
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        Self::between_guards(bytes, |start| {
            // SAFETY: replaces a part of a reservation that nobody else knows of (invariant 1).
            unsafe { rustix::mm::mmap(start, bytes, protection, flags, descriptor, 0) }
        })
    }

    /// Reserves addresses for `bytes` bytes and the two guards, and has `map` fill the middle.
    fn between_guards(
        bytes: usize,
        map: impl FnOnce(*mut c_void) -> Result<*mut c_void, Errno>,
    ) -> Result<Self, Errno> {
        let guard = rustix::param::page_size();
        let all = reserved(bytes).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing.
        let first = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags)
        }?;
        let start = first.wrapping_byte_add(guard);
        let start_of_bytes = NonNull::new(start.cast()).expect("mmap never maps at address zero");
        let parted = AtomicBool::new(false);
        let mapping = Self { start: start_of_bytes, bytes, parted }; // unmapped, should `map` fail
        map(start)?;
        // SAFETY: the range was mapped just now; keeping it out of core dumps changes no contents.
        let advised = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontDump) };
        let _ = advised; // a core dump that is too large is no reason to fail
        Ok(mapping)
    }

    /// Makes shared memory private to this process, at the same address and with the same contents:
    /// what is written here stays here. `backing` is what stands behind it. Once is enough: it must
    /// not lose what was written since.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`]; then it is shared as before.
    pub(crate) fn part(&self, backing: &Backing) -> Result<(), Error> {
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
        // Elsewhere first: mapping over what is there could fail when that is gone already.
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing.
        let copy = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), self.bytes, protection, flags, descriptor, 0)
        }?;
        let (start, flags) = (self.start.as_ptr().cast(), MremapFlags::MAYMOVE);
        // SAFETY: both ranges are whole mappings of our own, of the same length and contents; the
        // kernel puts one into the place of the other in one go, so every pointer stays good
        // (invariants 1 and 8).
        let moved = unsafe { rustix::mm::mremap_fixed(copy, self.bytes, self.bytes, flags, start) };
        if let Err(error) = moved {
            // SAFETY: mapped above, and known to nobody.
            let _ = unsafe { rustix::mm::munmap(copy, self.bytes) };
            return Err(error);
        }
        // SAFETY: as in `between_guards`; a new mapping has to be told again.
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
    /// Nobody else may access the range meanwhile: one of invariants 4 to 6 must say so.
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.at(offset..offset + bytes.len());
        // SAFETY: the target is inside the mapping and, by the caller's word, ours alone; `bytes`
        // is a live Rust slice and so cannot overlap it.
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
        // SAFETY: the target is inside the mapping and, by the caller's word, ours alone.
        unsafe { self.at(range).as_ptr().write_bytes(0, bytes) }
    }

    /// Copies `into.len()` bytes from `offset`.
    ///
    /// # Safety
    ///
    /// Nobody may write the range meanwhile: one of invariants 4 to 6 must say so.
    pub(crate) unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        let source = self.at(offset..offset + into.len());
        // SAFETY: the source is inside the mapping and, by the caller's word, at rest; `into` is a
        // live Rust slice and so cannot overlap it.
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
        // SAFETY: the whole reservation is the mapping's own, and nothing borrows it any more
        // (invariant 1).
        let unmapped = unsafe { rustix::mm::munmap(first, all) };
        debug_assert!(unmapped.is_ok(), "a mapping is unmapped once");
    }
}

#[cfg(test)]
mod tests;
