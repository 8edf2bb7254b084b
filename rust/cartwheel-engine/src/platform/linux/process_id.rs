//! The cached number of this process.
//!
//! Every call of a pool checks whether it comes from the process that made the pool, and the system
//! call for that takes as long as some native steps. So the number is cached on a page that the
//! kernel wipes in every forked child, for every kind of fork: a child finds zero there, and makes
//! the system call.
//!
//! # Invariants
//!
//! 1. The page is mapped for as long as the process lives, and accessed only as one atomic number,
//!    for which every bit pattern is valid.
#![expect(unsafe_code, reason = "a number on a page of its own, see the invariants")]

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The number of this process, as `std::process::id` returns it.
pub fn process_id() -> u32 {
    static PAGE: OnceLock<Option<&AtomicU32>> = OnceLock::new();
    let Some(kept) = PAGE.get_or_init(wiped_on_fork) else { return std::process::id() };
    // `Relaxed`: every thread that finds zero computes the same number itself.
    match kept.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            kept.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// A number that is zero in a forked child; `None` where the kernel has no such memory.
fn wiped_on_fork() -> Option<&'static AtomicU32> {
    let bytes = rustix::param::page_size();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let page = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the page was just mapped, and nothing is on it yet.
    if unsafe { rustix::mm::madvise(page, bytes, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: mapped above, and no other code knows the address.
        let _ = unsafe { rustix::mm::munmap(page, bytes) };
        return None;
    }
    let kept = NonNull::new(page)?.cast::<AtomicU32>();
    // SAFETY: a page of zeros, aligned, never unmapped and only ever accessed as this atomic
    // (invariant 1).
    Some(unsafe { kept.as_ref() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_number_of_the_system_in_every_call() {
        assert_eq!(process_id(), std::process::id());
        assert_eq!(process_id(), std::process::id());
    }
}
