//! A range of memory, private or shared, that never moves.
//!
//! [`crate::platform`] makes shared memory. It has no name, and no process can cause a SIGBUS in another
//! one where it is sealed against shrinking and growing. It is reserved before use, so a shortage is an
//! error instead of a signal, where the system can promise that.
//!
//! Before and behind every mapping there is a page that cannot be accessed: a stray write past
//! either end is a segmentation fault at once, and never reaches the next mapping.
#![expect(unsafe_code, reason = "maps memory and copies through raw pointers, see the invariants")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::Error;
use crate::platform::{self, Access, Behind, Scope};

/// The memory behind a mapping in the process that made it: the descriptor of shared memory, or
/// nothing for private memory.
///
/// It is separate from the [`Mapping`] so that a pool can close its descriptors while arrays still
/// show the memory.
#[derive(Debug)]
pub(crate) struct Backing {
    name: &'static str,
    descriptor: Option<OwnedFd>,
    /// End of the range that was reserved: there is nothing behind it.
    reserved: AtomicUsize,
}

impl Backing {
    fn new(name: &'static str, descriptor: Option<OwnedFd>) -> Self {
        Self { name, descriptor, reserved: AtomicUsize::new(0) }
    }

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
        let descriptor =
            descriptor.map_err(Error::os(format!("sharing memory ({})", self.name)))?;
        let reserved = AtomicUsize::new(self.reserved.load(Ordering::Relaxed)); // a number alone
        Ok(Self { name: self.name, descriptor, reserved })
    }

    /// Makes sure that `range` is backed by memory. Ranges are reserved in order.
    ///
    /// Private memory needs nothing: the system provides it page by page. Callers check
    /// [`MemoryLimit`](super::MemoryLimit) first, because the system kills the process before it refuses.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when there is not enough, otherwise [`Error::Os`].
    pub(crate) fn reserve(&self, range: Range<usize>) -> Result<(), Error> {
        let Some(descriptor) = &self.descriptor else { return Ok(()) };
        let (end, bytes) = (range.end, range.len());
        if bytes == 0 {
            return Ok(());
        }
        platform::reserve(descriptor, range).map_err(Error::memory(self.name, bytes))?;
        self.reserved.fetch_max(end, Ordering::Relaxed); // a number: the memory is the system's
        Ok(())
    }

    /// Gives shared memory back to the system, even if workers map it, where the system can do that: its bytes are
    /// zeros from now on, or undefined. Private memory goes with its mapping.
    pub(crate) fn give_back(&self) {
        self.descriptor.iter().for_each(platform::give_back);
    }
}

/// Mapped memory. It starts as zeros and stays at one address until it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether shared memory was made private.
    is_private: AtomicBool,
}

// SAFETY: a mapping is plain memory without thread affinity; invariants 2 to 6 say which accesses
// are allowed, and when.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out only raw pointers and unsafe copies, for which invariants 2 to 6 say
// which accesses are allowed, and when.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Makes `bytes` bytes of zeros. `name` is what messages call them, and what Linux calls shared
    /// memory in `/proc/*/maps`.
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
            let mapping = Self::map(bytes, Behind::Nothing).map_err(failed)?;
            return Ok((mapping, Backing::new(name, None)));
        }
        let descriptor = platform::make_shared(name, bytes).map_err(failed)?;
        let behind = Behind::Shared(&descriptor, Access::Write);
        let mapping = Self::map(bytes, behind).map_err(failed)?;
        Ok((mapping, Backing::new(name, Some(descriptor))))
    }

    /// Maps memory that another process made with [`Mapping::new`].
    ///
    /// # Safety
    ///
    /// Other mappings of the memory are accessed as the invariants say.
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
        let (got, _) =
            platform::look_at(&descriptor).map_err(Error::os("reading a memory's size"))?;
        let expected = platform::held_bytes(bytes);
        if got != expected {
            return Err(Error::Mismatch { what: "size of a mapping", expected, got });
        }
        // The mapping does not need the descriptor any longer.
        let behind = Behind::Shared(&descriptor, access);
        Self::map(bytes, behind).map_err(Error::memory("a worker", bytes))
    }

    fn map(bytes: usize, behind: Behind<'_>) -> std::io::Result<Self> {
        Ok(Self { start: platform::map(bytes, behind)?, bytes, is_private: AtomicBool::new(false) })
    }

    /// Makes shared memory private to this process, at the same address and with the same contents:
    /// later writes of this process stay in it. `backing` is the memory behind the mapping. A second
    /// call does nothing, so that it does not lose what was written since.
    ///
    /// # Safety
    ///
    /// This process waits for nothing that another one writes, and no other thread of it reads the memory
    /// meanwhile, unless [`platform::MAKES_PRIVATE_AT_ONCE`] (invariant 8).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`]; the memory stays shared then.
    pub(crate) unsafe fn make_private(&self, backing: &Backing) -> Result<(), Error> {
        let Some(descriptor) = backing.descriptor() else { return Ok(()) };
        // `Relaxed`: it only decides which of two calls does the work.
        if self.is_private.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let used = backing.reserved.load(Ordering::Relaxed).min(self.bytes);
        // SAFETY: the mapping is this one's (invariant 1), and the caller promises the rest.
        let made_private =
            unsafe { platform::make_private(self.start, self.bytes, used, descriptor) };
        self.is_private.store(made_private.is_ok(), Ordering::Relaxed);
        made_private.map_err(Error::memory(backing.name, self.bytes))
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The address of a range of bytes.
    ///
    /// # Panics
    ///
    /// When `range` is not inside the mapping.
    pub(crate) fn at(&self, range: Range<usize>) -> NonNull<u8> {
        if range.start > range.end || range.end > self.bytes {
            outside(range, self.bytes);
        }
        // SAFETY: the range is inside the mapping, which stays mapped (invariant 1).
        unsafe { self.start.add(range.start) }
    }

    /// Gives the whole pages of `range` back to the system, where it can take them.
    ///
    /// # Safety
    ///
    /// No thread or process reads the range before it was written again: invariant 3 must say so.
    pub(crate) unsafe fn give_back(&self, range: Range<usize>) {
        let bytes = range.len();
        // SAFETY: the range is inside the mapping (invariant 1), and the caller promises the rest.
        unsafe { platform::give_back_pages(self.at(range), bytes) }
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

    /// Writes `byte` to every byte of `range`.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::write`].
    pub(crate) unsafe fn fill(&self, range: Range<usize>, byte: u8) {
        let bytes = range.len();
        // SAFETY: the target is inside the mapping and, as the caller promises, accessed by nothing
        // else.
        unsafe { self.at(range).as_ptr().write_bytes(byte, bytes) }
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
        unsafe { source.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }

    /// The same, to bytes that need not be initialized; returns them, which are then.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::read`].
    pub(crate) unsafe fn read_new<'a>(
        &self,
        offset: usize,
        into: &'a mut [MaybeUninit<u8>],
    ) -> &'a mut [u8] {
        let source = self.at(offset..offset + into.len());
        let first = into.as_mut_ptr().cast::<u8>();
        // SAFETY: the source is inside the mapping and, as the caller promises, not being written;
        // `into` is a live Rust slice and so cannot overlap it.
        unsafe { source.as_ptr().copy_to_nonoverlapping(first, into.len()) };
        // SAFETY: all bytes were just written, and the slice borrows them.
        unsafe { std::slice::from_raw_parts_mut(first, into.len()) }
    }
}

/// Apart from [`Mapping::at`], whose every use would store what the message shows.
#[cold]
fn outside(range: Range<usize>, bytes: usize) -> ! {
    panic!("{range:?} is not inside a mapping of {bytes} bytes")
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this size, and nothing borrows it any longer (invariant
        // 1).
        unsafe { platform::unmap(self.start, self.bytes) }
    }
}

#[cfg(all(test, target_os = "linux", not(feature = "portable")))]
mod linux_tests;
#[cfg(test)]
mod tests;
