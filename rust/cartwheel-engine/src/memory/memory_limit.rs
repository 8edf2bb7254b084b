//! The memory that this process may still take before the system kills it.
//!
//! A control group that runs out of memory gets a SIGKILL, which cannot be caught, and `fallocate`
//! does not fail before that: it takes page after page until the kill. So the limits are read
//! before memory is taken: the limits of the process's control groups, up the hierarchy, and the
//! memory that is left on the machine. Memory that the kernel would reclaim first (file cache,
//! swap) counts as left, so a request that might have fitted is not refused.
//!
//! Sources: the kernel's `admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and
//! `filesystems/proc.rst`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Shortage};

/// Growth is checked once for this many bytes: reading the limits costs more than a small slab
/// does.
const STRIDE: usize = 16 << 20;

/// The memory that is left below the tightest limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes, including those that the kernel would reclaim.
    pub bytes: u64,
    /// The file that states the limit.
    pub file: PathBuf,
}

impl MemoryLimit {
    /// The memory that this process has left; `None` where the system does not say.
    pub fn now() -> Option<Self> {
        Self::below(Path::new("/"))
    }

    /// The memory left to a process whose `proc` and `sys` are below `root`.
    pub fn below(root: &Path) -> Option<Self> {
        let swap = swap_left(root);
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let groups = groups.lines().filter_map(|line| Group::new(root, line));
        let groups = groups.flat_map(|group| group.memory_limits(swap).collect::<Vec<_>>());
        groups.chain(machine(root, swap)).min_by_key(|memory_limit| memory_limit.bytes)
    }

    /// Refuses to take `bytes` bytes for `what` when fewer are left.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn require(what: &'static str, bytes: usize) -> Result<(), Error> {
        match Self::now() {
            Some(Self { bytes: left, file }) if left < bytes as u64 => {
                Err(Error::OutOfMemory { what, bytes, why: Shortage::Limit { left, file } })
            }
            _ => Ok(()),
        }
    }

    /// [`MemoryLimit::require`] for memory that grows from `start` to `end` bytes in small parts.
    pub(crate) fn require_growth(
        what: &'static str,
        start: usize,
        end: usize,
    ) -> Result<(), Error> {
        if start / STRIDE == end / STRIDE { Ok(()) } else { Self::require(what, end - start) }
    }
}

/// A control group that limits memory, and the names of its files.
struct Group {
    /// Mount point of the hierarchy.
    mount: PathBuf,
    /// Path of the group, below the mount point.
    path: PathBuf,
    limit: &'static str,
    usage: &'static str,
    /// Entries of `memory.stat` that the kernel reclaims when memory is short.
    given_back: &'static [&'static str],
    /// The limit of swap, where the group has a separate one.
    swap: Option<[&'static str; 2]>,
}

impl Group {
    /// Parses a line of `/proc/self/cgroup`: `0::PATH` (version 2), or `N:CONTROLLERS:PATH`.
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

    /// The memory left to the group and to each group above it.
    ///
    /// A container may see the path that its host sees, while only the end of that path is mounted:
    /// groups that are not mounted are left out.
    fn memory_limits(&self, swap: u64) -> impl Iterator<Item = MemoryLimit> + '_ {
        self.path
            .ancestors()
            .filter_map(move |path| self.memory_limit(&self.mount.join(path), swap))
    }

    fn memory_limit(&self, directory: &Path, swap: u64) -> Option<MemoryLimit> {
        let number = |name: &str| read_number(&directory.join(name));
        let file = directory.join(self.limit);
        let limit = read_number(&file)?; // "max" is not a number and means no limit
        let used = number(self.usage)?;
        let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        let given_back: u64 = self.given_back.iter().map(|name| entry(&stat, name)).sum();
        let swap = match self.swap.map(|[limit, used]| (number(limit), number(used))) {
            Some((Some(limit), used)) => swap.min(limit.saturating_sub(used.unwrap_or(0))),
            _ => swap,
        };
        let left = limit.saturating_sub(used.saturating_sub(given_back)).saturating_add(swap);
        Some(MemoryLimit { bytes: left, file })
    }
}

/// The memory left on the whole machine.
fn machine(root: &Path, swap: u64) -> Option<MemoryLimit> {
    let file = root.join("proc/meminfo");
    let available = kibibytes(&fs::read_to_string(&file).ok()?, "MemAvailable:")?;
    Some(MemoryLimit { bytes: available.saturating_add(swap), file })
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
