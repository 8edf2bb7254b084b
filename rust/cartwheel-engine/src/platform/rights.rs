//! Descriptors that travel over sockets of the Unix domain (`SCM_RIGHTS`): the same everywhere.
//!
//! Each travels with one byte. Nothing acknowledges it. macOS may lose what the sender closes before
//! it has arrived, so the sender keeps it open, or another descriptor of it.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The byte with which a descriptor travels.
const BYTE: [u8; 1] = [1];

/// Sends a descriptor, of which the receiver gets a copy.
pub(crate) fn send_descriptor(socket: impl AsFd, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sent = [descriptor.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&sent)), "there is room for one");
    sendmsg(socket, &[IoSlice::new(&BYTE)], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives a descriptor, which programs that this process starts do not inherit.
pub(crate) fn receive_descriptor(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    if got.bytes == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message
            && let Some(descriptor) = received.next()
        {
            fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
            return Ok(descriptor);
        }
    }
    Err(Errno::MFILE.into()) // the system drops what it has no number for
}

/// Programs that this process starts do not inherit this descriptor.
pub(crate) fn keep_from_programs(descriptor: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}
