//! Whole messages over a socket pair, whatever interrupts the calls.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

use cartwheel_engine::worker::{Channel, LARGEST_MESSAGE};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::worker_process::ignored_test;

fn never() -> bool {
    false
}

fn ends() -> (Channel, Channel) {
    let (mine, theirs) = UnixStream::pair().unwrap();
    (Channel::new(mine.into(), None).unwrap(), Channel::new(theirs.into(), None).unwrap())
}

/// More than a socket holds.
fn large(byte: u8) -> Vec<u8> {
    vec![byte; 3_000_000]
}

#[test]
fn what_an_interrupt_keeps_from_being_sent_goes_first_later() {
    let (mut mine, mut its) = ends();
    for byte in 1..=3 {
        mine.post(byte.into(), &large(byte), Vec::new()).unwrap();
        let error = mine.flush(&mut || true).unwrap_err(); // as the other end does not read
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(mine.has_unsent());
    }
    let reader = thread::spawn(move || {
        for byte in 1..=3 {
            assert_eq!(its.receive(&mut never).unwrap(), (byte.into(), large(byte)));
        }
    });
    mine.flush(&mut never).unwrap();
    assert!(!mine.has_unsent());
    reader.join().unwrap();
}

#[test]
fn the_part_of_a_message_that_has_arrived_waits_for_the_rest() {
    let (mut mine, mut its) = ends();
    mine.post(7, &large(1), Vec::new()).unwrap();
    mine.flush(&mut || true).unwrap_err();
    let error = its.receive(&mut || true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let writer = thread::spawn(move || mine.flush(&mut never));
    assert_eq!(its.receive(&mut never).unwrap(), (7, large(1)));
    writer.join().unwrap().unwrap();
}

#[test]
fn descriptors_arrive_with_their_message() {
    let (mut mine, mut its) = ends();
    let path = std::env::temp_dir().join(format!("cartwheel-channel-{}", std::process::id()));
    let mut files = [1, 2].map(|_| {
        let options = std::fs::File::options().read(true).write(true).create(true).to_owned();
        options.open(&path).unwrap()
    });
    std::fs::remove_file(&path).unwrap();
    let sent = files.iter().map(|file| OwnedFd::from(file.try_clone().unwrap())).collect();
    mine.post(0, b"", sent).unwrap();
    mine.post(1, b"next", Vec::new()).unwrap();
    mine.flush(&mut never).unwrap();
    assert_eq!(its.receive(&mut never).unwrap(), (0, Vec::new()));
    assert_eq!(its.receive(&mut never).unwrap(), (1, b"next".to_vec()));
    let mut received = std::fs::File::from(its.take_descriptor().unwrap());
    assert!(its.take_descriptor().is_some());
    assert!(its.take_descriptor().is_none());
    received.write_all(b"here").unwrap();
    let mut found = String::new();
    files[0].seek(SeekFrom::Start(0)).unwrap();
    files[0].read_to_string(&mut found).unwrap();
    assert_eq!(found, "here");
}

#[test]
#[ignore = "takes every number of a descriptor that its process has, so another test starts it"]
fn loses_a_descriptor() {
    let limit = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let (mut mine, mut its) = ends();
    let sent = OwnedFd::from(UnixStream::pair().unwrap().0);
    let copies = |count: usize| (0..count).map(|_| sent.try_clone().unwrap()).collect();
    mine.post(1, b"in part", copies(2)).unwrap();
    mine.post(2, b"whole", copies(1)).unwrap();
    mine.flush(&mut never).unwrap();
    let mut taken: Vec<_> = std::iter::from_fn(|| sent.try_clone().ok()).collect();
    taken.pop(); // so one descriptor of the message arrives
    let error = its.receive(&mut never).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    assert_eq!(its.receive(&mut never).unwrap(), (2, b"whole".to_vec()));
    assert!(its.take_descriptor().is_some());
    assert!(its.take_descriptor().is_none());
}

#[test]
fn a_message_that_loses_a_descriptor_is_an_error_and_the_next_one_is_whole() {
    assert!(ignored_test("channel::loses_a_descriptor").status().unwrap().success());
}

#[test]
fn a_message_of_more_than_1_gib_is_neither_queued_nor_read() {
    let (mut mine, _its) = ends();
    let zeros = vec![0; LARGEST_MESSAGE + 1]; // which the system backs by nothing
    let error = mine.post(0, &zeros, Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("1073741825 bytes"), "{error}");
    assert!(!mine.has_unsent());
    let (mut raw, theirs) = UnixStream::pair().unwrap();
    let mut its = Channel::new(theirs.into(), None).unwrap();
    for part in [0, LARGEST_MESSAGE as u64 + 1, 0] {
        raw.write_all(&part.to_ne_bytes()).unwrap();
    }
    let error = its.receive(&mut never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_end_of_the_other_side_ends_calls_also_where_its_socket_stays_open() {
    let (mut mine, its) = ends();
    drop(its);
    assert_eq!(mine.receive(&mut never).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    mine.post(0, b"lost", Vec::new()).unwrap();
    assert_eq!(mine.flush(&mut never).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert!(!mine.has_unsent());
    let mut child = Command::new("sleep").arg("3600").spawn().unwrap();
    let (end, held) = UnixStream::pair().unwrap();
    let mut watching = Channel::new(end.into(), Some(child.id())).unwrap();
    child.kill().unwrap();
    let error = watching.receive(&mut never).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    child.wait().unwrap();
    drop(held);
}
