//! How much memory this program may still take before the system ends it.
//!
//! A control group that runs out of memory gets a SIGKILL, which nobody can catch, and `fallocate`
//! answers no sooner: it takes page after page until then. So the limits are read before memory is
//! taken: those of the control groups that the process is in, up the hierarchy, and what the machine
//! has left. What the kernel would give back first (file cache, swap) counts as left, so that nothing
//! is refused that might have fitted.
//!
//! Sources: the kernel's `admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
//! `filesystems/proc.rst`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Shortage};

/// Growth is checked once for so many bytes: reading the limits costs more than a small slab does.
const STRIDE: usize = 16 << 20;

/// Memory that is left below the tightest limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headroom {
    /// Bytes, those counted in that the kernel would give back.
    pub bytes: u64,
    /// The file that states the limit.
    pub file: PathBuf,
}

impl Headroom {
    /// What this process has left; `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        Self::below(Path::new("/"))
    }

    /// What a process has left whose `proc` and `sys` are below `root`.
    pub fn below(root: &Path) -> Option<Self> {
        let swap = swap_left(root);
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let groups = groups.lines().filter_map(|line| Group::new(root, line));
        let groups = groups.flat_map(|group| group.headrooms(swap).collect::<Vec<_>>());
        groups.chain(machine(root, swap)).min_by_key(|headroom| headroom.bytes)
    }

    /// Refuses to take `bytes` bytes for `what` when there are not so many.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn require(what: &'static str, bytes: usize) -> Result<(), Error> {
        match Self::now() {
            Some(Self { bytes: left, file }) if left < bytes as u64 => {
                Err(Error::OutOfMemory { what, bytes, why: Shortage::Limit { left, file } })
            }
            _ => Ok(()),
        }
    }

    /// [`Headroom::require`] for memory that grows from `start` to `end` bytes, a little at a time.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn require_growth(
        what: &'static str,
        start: usize,
        end: usize,
    ) -> Result<(), Error> {
        if start / STRIDE == end / STRIDE { Ok(()) } else { Self::require(what, end - start) }
    }
}

/// A control group with a say about memory, and what its files are called.
struct Group {
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    /// The group, below the mount.
    path: PathBuf,
    limit: &'static str,
    usage: &'static str,
    /// Entries of `memory.stat` that the kernel gives back when memory is short.
    given_back: &'static [&'static str],
    /// The limit of swap, where the group has one of its own.
    swap: Option<[&'static str; 2]>,
}

impl Group {
    /// The group of a line of `/proc/self/cgroup`: `0::PATH` (version 2), or `N:CONTROLLERS:PATH`.
    fn new(root: &Path, line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let path = PathBuf::from(path.trim_start_matches('/'));
        let mount = root.join("sys/fs/cgroup");
        if controllers.is_empty() {
            return Some(Self {
                mount,
                path,
                limit: "memory.max",
                usage: "memory.current",
                given_back: &["active_file", "inactive_file", "slab_reclaimable"],
                swap: Some(["memory.swap.max", "memory.swap.current"]),
            });
        }
        controllers.split(',').any(|controller| controller == "memory").then(|| Self {
            mount: mount.join("memory"),
            path,
            limit: "memory.limit_in_bytes",
            usage: "memory.usage_in_bytes",
            given_back: &["total_active_file", "total_inactive_file"],
            swap: None,
        })
    }

    /// What the group has left, and each one above it.
    ///
    /// A container may see the path that its host sees, of which nothing is mounted but the end: such
    /// groups are not there, and are left out.
    fn headrooms(&self, swap: u64) -> impl Iterator<Item = Headroom> + '_ {
        self.path.ancestors().filter_map(move |path| self.headroom(&self.mount.join(path), swap))
    }

    fn headroom(&self, directory: &Path, swap: u64) -> Option<Headroom> {
        let number = |name: &str| read_number(&directory.join(name));
        let file = directory.join(self.limit);
        let limit = read_number(&file)?; // "max" is no number, and no limit
        let used = number(self.usage)?;
        let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        let given_back: u64 = self.given_back.iter().map(|name| entry(&stat, name)).sum();
        let swap = match self.swap.map(|[limit, used]| (number(limit), number(used))) {
            Some((Some(limit), used)) => swap.min(limit.saturating_sub(used.unwrap_or(0))),
            _ => swap,
        };
        let left = limit.saturating_sub(used.saturating_sub(given_back)).saturating_add(swap);
        Some(Headroom { bytes: left, file })
    }
}

/// What the machine as a whole has left.
fn machine(root: &Path, swap: u64) -> Option<Headroom> {
    let file = root.join("proc/meminfo");
    let available = kibibytes(&fs::read_to_string(&file).ok()?, "MemAvailable:")?;
    Some(Headroom { bytes: available.saturating_add(swap), file })
}

fn swap_left(root: &Path) -> u64 {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    kibibytes(&meminfo, "SwapFree:").unwrap_or(0)
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The entry `name` of a file of lines `NAME NUMBER`; 0 when there is none.
fn entry(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// The entry `name` of `/proc/meminfo`, `NAME NUMBER kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().find(|line| line.starts_with(name))?.split_whitespace().skip(1);
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}
