//! Whole messages between two processes, over the two ends of a socket pair.
//!
//! ```text
//! message := number u64, length u64, descriptors u64 (native byte order), `length` bytes,
//!            then for each descriptor one byte, with which it travels
//! ```
//!
//! Any call may be interrupted, as by Ctrl-C, and the channel stays whole: what could not be sent
//! waits here and goes before every later message, and the part of a message that has arrived waits
//! here for the rest.
//!
//! Errors: `UnexpectedEof` where the other end is closed or its process has ended, `Interrupted` by the
//! caller, `InvalidInput` for a message that is too large.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::Errno;

use super::ProcessHandle;
use crate::platform::{prepare_socket, receive_descriptor, send_bytes, send_descriptor};

/// The most bytes of a message: 1 GiB.
pub const LARGEST_MESSAGE: usize = 1 << 30;

/// The longest time between two looks at the other process, and at the caller's interrupts.
const SLICE: Duration = Duration::from_millis(50);

/// The parts of a header, and its bytes.
const PARTS: usize = 3;
const HEADER: usize = PARTS * size_of::<u64>();

/// A message that was not sent completely.
#[derive(Debug)]
struct Unsent {
    /// Header and message.
    bytes: Vec<u8>,
    written: usize,
    descriptors: VecDeque<OwnedFd>,
}

/// A message that has not arrived completely.
#[derive(Debug, Default)]
struct Arriving {
    header: [u8; HEADER],
    bytes: Vec<u8>,
    /// The bytes of header and message that are there.
    there: usize,
    /// The descriptors that are there, or were lost.
    descriptors: Vec<Option<OwnedFd>>,
}

/// One end of a channel.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// The process at the other end, if it is watched.
    peer: Option<ProcessHandle>,
    /// Whether it had ended at the last look. It may have sent something before: so one more follows.
    peer_has_ended: bool,
    unsent: VecDeque<Unsent>,
    arriving: Arriving,
    /// The descriptors that came with messages, in their order.
    descriptors: VecDeque<OwnedFd>,
}

impl Channel {
    /// An end of a socket pair, which programs that this process starts do not inherit. The process
    /// `peer` is at the other end, if one is to be watched.
    ///
    /// # Errors
    ///
    /// The descriptor is not a socket.
    pub fn new(end: OwnedFd, peer: Option<u32>) -> io::Result<Self> {
        prepare_socket(&end)?;
        let stream = UnixStream::from(end);
        stream.set_read_timeout(Some(SLICE))?;
        stream.set_write_timeout(Some(SLICE))?;
        Ok(Self {
            stream,
            // A process that is gone already has closed its end, which says the same.
            peer: peer.and_then(|pid| ProcessHandle::new(pid).ok()),
            peer_has_ended: false,
            unsent: VecDeque::new(),
            arriving: Arriving::default(),
            descriptors: VecDeque::new(),
        })
    }

    /// Another object for the same end, to send from another thread.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn sender(&self) -> io::Result<Self> {
        Self::new(self.stream.try_clone()?.into(), None)
    }

    /// Queues a message, to be sent by [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// It is too large; nothing was queued.
    pub fn post(
        &mut self,
        number: u64,
        message: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<()> {
        check_length(message.len() as u64)?;
        let mut bytes = Vec::with_capacity(HEADER + message.len());
        for part in [number, message.len() as u64, descriptors.len() as u64] {
            bytes.extend(part.to_ne_bytes());
        }
        bytes.extend_from_slice(message);
        self.unsent.push_back(Unsent { bytes, written: 0, descriptors: descriptors.into() });
        Ok(())
    }

    /// Whether a queued message was not sent completely.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends the queued messages. `interrupted` is called when nothing could be sent for 50 ms, and ends
    /// the call when it returns `true`.
    ///
    /// # Errors
    ///
    /// As in the header of this file; the next call sends the rest, unless the other end is gone.
    pub fn flush(&mut self, interrupted: &mut dyn FnMut() -> bool) -> io::Result<()> {
        while let Some(first) = self.unsent.front_mut() {
            let sent = match (&first.bytes[first.written..], first.descriptors.front()) {
                ([], None) => {
                    self.unsent.pop_front();
                    continue;
                }
                ([], Some(descriptor)) => send_descriptor(&self.stream, descriptor)
                    .map(|()| drop(first.descriptors.pop_front())),
                (rest, _) => send_bytes(&self.stream, rest).map(|bytes| first.written += bytes),
            };
            let goes_on = sent.or_else(|error| self.idle(error, interrupted));
            if goes_on.as_ref().is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
                self.unsent.clear(); // it will not be read
            }
            goes_on?;
        }
        Ok(())
    }

    /// Receives the next message and its number; `interrupted` as of [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// As in the header of this file; what had arrived of a message is kept for the next call. A
    /// message is dropped if this process has no number left for one of its descriptors.
    pub fn receive(&mut self, interrupted: &mut dyn FnMut() -> bool) -> io::Result<(u64, Vec<u8>)> {
        loop {
            match self.read() {
                Ok(None) => {}
                Ok(Some(message)) => return Ok(message),
                Err(error) => self.idle(error, interrupted)?,
            }
        }
    }

    /// Makes one system call for the next message; returns the message when it is complete.
    fn read(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let arriving = &mut self.arriving;
        let at = arriving.there;
        let parts: [u64; PARTS] = {
            let (parts, _) = arriving.header.as_chunks();
            std::array::from_fn(|part| u64::from_ne_bytes(parts[part]))
        };
        let [number, length, descriptors] = parts;
        if at < HEADER {
            arriving.there += some(self.stream.read(&mut arriving.header[at..])?)?;
            return Ok(None);
        }
        if at == HEADER && arriving.bytes.is_empty() {
            arriving.bytes = vec![0; check_length(length)?];
        }
        if at < HEADER + arriving.bytes.len() {
            arriving.there += some(self.stream.read(&mut arriving.bytes[at - HEADER..])?)?;
        } else if (arriving.descriptors.len() as u64) < descriptors {
            arriving.descriptors.push(receive_descriptor(&self.stream)?);
        }
        let is_complete = arriving.there == HEADER + arriving.bytes.len()
            && arriving.descriptors.len() as u64 == descriptors;
        if !is_complete {
            return Ok(None);
        }
        let Arriving { bytes, descriptors, .. } = std::mem::take(arriving);
        let descriptors: Option<Vec<_>> = descriptors.into_iter().collect();
        self.descriptors.extend(descriptors.ok_or(Errno::MFILE)?);
        Ok(Some((number, bytes)))
    }

    /// Nothing could be sent or read for a slice, or an error ends the call.
    fn idle(&mut self, error: io::Error, interrupted: &mut dyn FnMut() -> bool) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return Err(gone()),
            _ => return Err(error),
        }
        if self.peer_has_ended {
            return Err(gone());
        }
        self.peer_has_ended = self.peer.as_ref().is_some_and(|peer| !peer.is_alive());
        if interrupted() { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Ends the channel for both ends, also if a fork of this process has a copy of this one. What was
    /// sent before can still be received.
    pub fn shut_down(&self) {
        let _ = self.stream.shutdown(Shutdown::Both); // it fails where the other end is gone
    }

    /// Takes the first of the descriptors that came with messages.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }
}

fn check_length(bytes: u64) -> io::Result<usize> {
    let fits = usize::try_from(bytes).ok().filter(|&bytes| bytes <= LARGEST_MESSAGE);
    fits.ok_or_else(|| {
        let text =
            format!("a message has {bytes} bytes; the largest may have {LARGEST_MESSAGE} (1 GiB)");
        io::Error::new(ErrorKind::InvalidInput, text)
    })
}

/// At least one byte; there are none where the other end is closed.
fn some(bytes: usize) -> io::Result<usize> {
    if bytes == 0 { Err(gone()) } else { Ok(bytes) }
}

fn gone() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the other end of the channel is gone")
}
