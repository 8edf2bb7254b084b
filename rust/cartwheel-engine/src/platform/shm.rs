//! Shared memory of POSIX: an object with a name, which is removed at once.
//!
//! On Linux it is a file in `/dev/shm`, whose size limits it. It is not sealed: any process that has the
//! descriptor could make it smaller and so cause a SIGBUS in the others. Only worker processes get it,
//! which are trusted with the contents anyway. macOS allows one size for each object, the first.
//!
//! A process that is killed between making the object and removing its name leaves an empty object
//! behind.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::shm::{OFlags, open, unlink};

/// Makes shared memory of `bytes` bytes, which are zeros.
pub(super) fn make(bytes: usize) -> io::Result<OwnedFd> {
    let descriptor = nameless()?;
    rustix::fs::ftruncate(&descriptor, bytes as u64)?;
    Ok(descriptor)
}

fn nameless() -> io::Result<OwnedFd> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
    loop {
        // At most 30 characters, which is what macOS allows. A name may be left of a process that had
        // this id and was killed.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("/cartwheel-{}-{number}", std::process::id());
        match open(&name, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => {}
            made => {
                let descriptor = made?;
                unlink(&name)?;
                return Ok(descriptor);
            }
        }
    }
}
