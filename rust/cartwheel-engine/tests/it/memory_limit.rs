//! The memory that a program has left is the minimum over its control groups and the machine.

use std::fs;
use std::path::{Path, PathBuf};

use cartwheel_engine::memory::MemoryLimit;

const MIB: u64 = 1 << 20;

/// A directory with the files of an invented system, removed when dropped.
struct System(PathBuf);

impl System {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("cartwheel-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().expect("a file is in a directory")).expect("made");
            fs::write(file, text).expect("written");
        }
        Self(root)
    }

    /// The bytes that are left, and the file that this number comes from.
    fn memory_limit(&self) -> Option<(u64, String)> {
        let MemoryLimit { bytes, file } = MemoryLimit::below(&self.0)?;
        let file = file.strip_prefix(&self.0).expect("it is below the root");
        Some((bytes, file.display().to_string()))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:  8192 kB\nSwapFree:  0 kB\n");

#[test]
fn without_control_groups_the_machine_is_the_limit() {
    let system = System::new("machine", &[MEMINFO]);
    assert_eq!(system.memory_limit(), Some((8 * MIB, "proc/meminfo".to_owned())));
}

#[test]
fn a_system_without_memory_files_has_no_limit() {
    assert_eq!(System::new("silent", &[("proc/self/cgroup", "0::/\n")]).memory_limit(), None);
}

#[test]
fn the_tightest_group_up_the_hierarchy_is_the_limit() {
    let system = System::new(
        "hierarchy",
        &[
            MEMINFO,
            ("proc/self/cgroup", "0::/slice/job\n"),
            ("sys/fs/cgroup/slice/job/memory.max", "max\n"),
            ("sys/fs/cgroup/slice/job/memory.current", "1000000\n"),
            ("sys/fs/cgroup/slice/memory.max", "5242880\n"),
            ("sys/fs/cgroup/slice/memory.current", "3145728\n"),
        ],
    );
    assert_eq!(system.memory_limit(), Some((2 * MIB, "sys/fs/cgroup/slice/memory.max".to_owned())));
}

#[test]
fn a_container_finds_its_own_group_at_the_mount() {
    let system = System::new(
        "container",
        &[
            MEMINFO,
            ("proc/self/cgroup", "4:cpu,memory:/docker/f00d\n0::/docker/f00d\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4194304\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"),
        ],
    );
    let file = "sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned();
    assert_eq!(system.memory_limit(), Some((3 * MIB, file)));
}

#[test]
fn memory_that_the_kernel_can_reclaim_is_left() {
    let system = System::new(
        "cache",
        &[
            ("proc/meminfo", "MemAvailable: 90000 kB\nSwapFree: 1024 kB\n"),
            ("proc/self/cgroup", "0::/job\n"),
            ("sys/fs/cgroup/job/memory.max", "8388608\n"),
            ("sys/fs/cgroup/job/memory.current", "8388608\n"),
            (
                "sys/fs/cgroup/job/memory.stat",
                "anon 4194304\nshmem 1048576\ninactive_file 2097152\nactive_file 1048576\n",
            ),
        ],
    );
    assert_eq!(system.memory_limit().unwrap().0, 4 * MIB, "three of file cache and one of swap");
    fs::write(system.0.join("sys/fs/cgroup/job/memory.swap.max"), "0\n").unwrap();
    assert_eq!(system.memory_limit().unwrap().0, 3 * MIB, "the group may not swap");
}

#[test]
fn a_group_above_its_limit_has_nothing_left() {
    let system = System::new(
        "above",
        &[
            MEMINFO,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "1000\n"),
            ("sys/fs/cgroup/memory.current", "2000\n"),
        ],
    );
    assert_eq!(system.memory_limit().unwrap().0, 0);
}

#[test]
fn this_machine_reports_its_memory() {
    let left = MemoryLimit::now().expect("Linux reports it");
    assert!(Path::new(&left.file).exists(), "{left:?}"); // the bytes may be 0
}
