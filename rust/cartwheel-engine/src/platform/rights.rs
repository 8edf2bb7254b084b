//! Bytes and descriptors that travel over sockets of the Unix domain (`SCM_RIGHTS`): the same
//! everywhere.
//!
//! Sending to an end that is closed is an error, not the signal SIGPIPE: a program may have given
//! that its default action, which ends the process. Each descriptor travels with one byte. Nothing acknowledges it. macOS may lose what the sender closes before
//! it has arrived, so the sender keeps it open, or another descriptor of it.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};

/// No signal; on Apple's systems [`prepare_socket`] says so once.
#[cfg(not(target_vendor = "apple"))]
const SENDING: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SENDING: SendFlags = SendFlags::empty();

/// Programs that another thread starts at this moment do not inherit what is received. Apple's
/// systems cannot promise that.
#[cfg(not(target_vendor = "apple"))]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(target_vendor = "apple")]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// The byte with which a descriptor travels.
const BYTE: [u8; 1] = [1];

/// Sends some of the bytes, and returns how many.
pub(crate) fn send_bytes(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SENDING)?)
}

/// Sends a descriptor, of which the receiver gets a copy.
pub(crate) fn send_descriptor(socket: impl AsFd, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sent = [descriptor.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&sent)), "there is room for one");
    sendmsg(socket, &[IoSlice::new(&BYTE)], &mut control, SENDING)?;
    Ok(())
}

/// Receives a descriptor, which programs that this process starts do not inherit; `None` where the
/// system has dropped it, because this process has no number left for it.
pub(crate) fn receive_descriptor(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RECEIVING)?;
    if got.bytes == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut received) = message
            && let Some(descriptor) = received.next()
        {
            if RECEIVING.is_empty() {
                fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
            }
            return Ok(Some(descriptor));
        }
    }
    Ok(None)
}

/// Programs that this process starts do not inherit this socket; and see [`SENDING`].
pub(crate) fn prepare_socket(socket: impl AsFd) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    rustix::net::sockopt::set_socket_nosigpipe(&socket, true)?;
    Ok(fcntl_setfd(socket, FdFlags::CLOEXEC)?)
}
