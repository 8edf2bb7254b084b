//! Shared memory can only be accessed by the processes that received it, cannot change its size,
//! and has guard pages.

use std::os::fd::AsFd;

use super::{Access, Backing, Mapping};
use crate::error::Error;
use crate::platform::Scope;

pub(super) fn shared(name: &'static str, bytes: usize) -> (Mapping, Backing) {
    Mapping::new(name, bytes, Scope::Shared).expect("a few bytes")
}

/// Another mapping of the same memory.
pub(super) fn attached(backing: &Backing, bytes: usize, access: Access) -> Result<Mapping, Error> {
    let descriptor = backing.descriptor().expect("shared").as_fd();
    let descriptor = descriptor.try_clone_to_owned().expect("a descriptor is left");
    // SAFETY: no process writes the memory while another one reads it.
    unsafe { Mapping::attach(descriptor, bytes, access) }
}

fn write(mapping: &Mapping, offset: usize, bytes: &[u8]) {
    // SAFETY: nothing else accesses the memory meanwhile.
    unsafe { mapping.write(offset, bytes) }
}

fn read(mapping: &Mapping, offset: usize) -> [u8; 4] {
    let mut bytes = [0; 4];
    // SAFETY: no process writes the memory meanwhile.
    unsafe { mapping.read(offset, &mut bytes) };
    bytes
}

#[test]
fn memory_of_another_size_is_refused() {
    let (_mapping, backing) = shared("other", 100);
    let more = 100 + rustix::param::page_size();
    match attached(&backing, more, Access::Write) {
        Err(Error::Mismatch { expected, got, .. }) => assert!(expected > got, "{expected}, {got}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_that_was_made_private_keeps_its_place_and_contents_and_is_shared_no_longer() {
    let page = rustix::param::page_size();
    for bytes in [3 * page, 3 * page - 5] {
        let (mapping, backing) = shared("private", bytes);
        backing.reserve(0..2 * page).expect("two pages"); // the third has no memory
        let other = attached(&backing, bytes, Access::Write).expect("the size is right");
        write(&other, 0, b"left");
        write(&mapping, 2 * page - 4, b"both");
        let start = mapping.at(0..1);
        // SAFETY: no process waits for the memory.
        unsafe { mapping.make_private(&backing) }.expect("a few pages");
        assert_eq!(mapping.at(0..1), start);
        assert_eq!((read(&mapping, 0), read(&mapping, 2 * page - 4)), (*b"left", *b"both"));
        assert_eq!(read(&mapping, 2 * page), [0; 4]);
        write(&mapping, 0, b"mine");
        write(&mapping, 2 * page, b"mine");
        write(&other, 2 * page - 4, b"ours");
        assert_eq!((read(&other, 0), read(&other, 2 * page)), (*b"left", [0; 4]));
        // SAFETY: no process waits for the memory.
        unsafe { mapping.make_private(&backing) }.expect("nothing is left to do");
        assert_eq!((read(&mapping, 0), read(&mapping, 2 * page)), (*b"mine", *b"mine"));
    }
}

#[test]
fn shared_memory_has_no_name_and_belongs_to_its_user() {
    let (_mapping, backing) = shared("nameless", 5000);
    let status = rustix::fs::fstat(backing.descriptor().expect("shared")).expect("open");
    assert_eq!(status.st_mode & 0o777, 0o600);
    #[cfg(target_os = "linux")] // macOS does not count names of memory
    assert_eq!(status.st_nlink, 0, "it has no name");
}

#[test]
#[cfg(target_os = "linux")]
fn giving_a_range_back_zeros_its_whole_pages_for_everyone_and_nothing_next_to_them() {
    let page = rustix::param::page_size();
    for scope in [Scope::Private, Scope::Shared] {
        let (mapping, backing) = Mapping::new("returned", 4 * page, scope).expect("four pages");
        backing.reserve(0..4 * page).expect("four pages");
        let other = backing.descriptor().map(|_| attached(&backing, 4 * page, Access::Read));
        let other = other.map(|other| other.expect("the size is right"));
        write(&mapping, 0, &vec![7; 4 * page]);
        // SAFETY: nothing else accesses the memory meanwhile.
        unsafe { mapping.give_back(page - 4..3 * page + 4) };
        for seen in std::iter::once(&mapping).chain(&other) {
            for offset in [0, page - 4, 3 * page, 4 * page - 4] {
                assert_eq!(read(seen, offset), [7; 4], "{offset} of {scope:?}");
            }
            for offset in [page, 3 * page - 4] {
                assert_eq!(read(seen, offset), [0; 4], "{offset} of {scope:?}");
            }
        }
    }
}
