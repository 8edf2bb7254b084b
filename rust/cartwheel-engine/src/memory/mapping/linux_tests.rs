//! Properties that only memfds have, and the kernel's view of mappings.

use rustix::fs::SealFlags;
use rustix::io::{Errno, FdFlags};

use super::Mapping;
use super::tests::{attached, shared};
use crate::platform::{Access, Scope};

/// The kernel's description of one mapping.
#[derive(Debug)]
struct Place {
    start: usize,
    end: usize,
    access: String,
    flags: Vec<String>,
}

/// All mappings of this process, ordered by address, and the index of the mapping named `name`.
fn places(name: &str) -> (Vec<Place>, usize) {
    let (mut places, mut found) = (Vec::<Place>::new(), None);
    for line in std::fs::read_to_string("/proc/self/smaps").expect("Linux").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let Some((start, end)) = words[0].split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).expect("hexadecimal");
            let (start, end) = (address(start), address(end));
            if line.contains(name) {
                found = Some(places.len());
            }
            places.push(Place { start, end, access: words[1].to_owned(), flags: Vec::new() });
        } else if words[0] == "VmFlags:" {
            let flags = words[1..].iter().map(|&flag| flag.to_owned());
            places.last_mut().expect("after its header").flags.extend(flags);
        }
    }
    (places, found.expect("mapped"))
}

#[test]
fn shared_memory_is_sealed_and_its_descriptor_is_private() {
    let (_mapping, backing) = shared("sealed", 5000);
    let descriptor = backing.descriptor().expect("shared");
    let seals = rustix::fs::fcntl_get_seals(descriptor).expect("a memfd");
    assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL), "{seals:?}");
    for bytes in [0, 4999, 5001] {
        assert_eq!(rustix::fs::ftruncate(descriptor, bytes), Err(Errno::PERM), "{bytes} bytes");
    }
    let more = rustix::fs::fcntl_add_seals(descriptor, SealFlags::WRITE);
    assert_eq!(more, Err(Errno::PERM), "no process can take the write access away");
    assert!(rustix::io::fcntl_getfd(descriptor).expect("open").contains(FdFlags::CLOEXEC));
}

#[test]
fn shared_memory_lies_between_guards_and_stays_out_of_core_dumps() {
    for bytes in [1, 4096, 4097, 1 << 20] {
        let (mapping, _backing) = shared("guarded", bytes);
        let (places, at) = places("guarded");
        let [before, own, behind] = &places[at - 1..=at + 1] else { unreachable!("three") };
        assert_eq!(own.access, "rw-s");
        assert_eq!(own.end - own.start, bytes.next_multiple_of(rustix::param::page_size()));
        assert!(own.flags.iter().any(|flag| flag == "dd"), "{:?}", own.flags);
        assert_eq!((before.end, behind.start), (own.start, own.end), "guard pages are next to it");
        for guard in [before, behind] {
            assert!(guard.access.starts_with("---"), "{guard:?}");
        }
        drop(mapping);
    }
}

#[test]
fn memory_that_was_attached_for_reading_is_not_writable() {
    let (_mapping, backing) = shared("readable", 100);
    let attached = attached(&backing, 100, Access::Read).expect("the size is right");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    let own = maps.lines().filter(|line| line.contains("readable"));
    let mut access: Vec<_> = own.filter_map(|line| line.split_whitespace().nth(1)).collect();
    access.sort_unstable();
    assert_eq!(access, ["r--s", "rw-s"], "the attached one, and the one that was made");
    drop(attached);
}

#[test]
fn a_dropped_mapping_leaves_no_address_behind() {
    let count = || std::fs::read_to_string("/proc/self/maps").expect("Linux").lines().count();
    let mapped: Vec<_> = (0..100).map(|_| Mapping::new("", 4096, Scope::Private)).collect();
    let with_them = count();
    drop(mapped);
    assert!(count() + 100 <= with_them, "{} of {with_them} are left", count());
}
