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

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::ProcessHandle;
use crate::platform::{keep_from_programs, receive_descriptor, send_descriptor};

/// The most bytes of a message: 1 GiB.
pub const LARGEST_MESSAGE: usize = 1 << 30;

/// The longest time between two looks at the other process, and at the caller's interrupts.
const SLICE: Duration = Duration::from_millis(50);

/// The parts of a header, and its bytes.
const PARTS: usize = 3;
const HEADER: usize = PARTS * size_of::<u64>();

/// Why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The message is too large; nothing was sent of it.
    #[error("a message has {bytes} bytes; the largest may have {LARGEST_MESSAGE} (1 GiB)")]
    TooLarge {
        /// Its bytes.
        bytes: u64,
    },
    /// The other end is closed, or its process has ended.
    #[error("the other end of the channel is gone")]
    HungUp,
    /// The time is over.
    #[error("the other end took too long")]
    TimedOut,
    /// The caller was interrupted; the next call goes on.
    #[error("interrupted")]
    Interrupted,
    /// The system refused something else.
    #[error("a channel to a worker: {0}")]
    Os(#[from] io::Error),
}

/// A message that was received.
#[derive(Debug)]
pub struct Message {
    /// The number that its sender gave it.
    pub number: u64,
    /// What it says.
    pub bytes: Vec<u8>,
}

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
    /// The descriptors that are there.
    descriptors: u64,
}

impl Arriving {
    /// Number, length and descriptors, if the header is there.
    fn parts(&self) -> Option<[u64; PARTS]> {
        let (parts, _) = self.header.as_chunks();
        (self.there >= HEADER).then(|| std::array::from_fn(|part| u64::from_ne_bytes(parts[part])))
    }
}

/// One end of a channel.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// The process at the other end, if it is watched.
    peer: Option<ProcessHandle>,
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
    /// The descriptor is no socket.
    pub fn new(end: OwnedFd, peer: Option<u32>) -> io::Result<Self> {
        keep_from_programs(&end)?;
        let stream = UnixStream::from(end);
        stream.set_read_timeout(Some(SLICE))?;
        stream.set_write_timeout(Some(SLICE))?;
        Ok(Self {
            stream,
            // A process that is gone already has closed its end, which says the same.
            peer: peer.and_then(|pid| ProcessHandle::new(pid).ok()),
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
    /// [`ChannelError::TooLarge`]; nothing was queued.
    pub fn post(
        &mut self,
        number: u64,
        message: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), ChannelError> {
        let parts = [number, message.len() as u64, descriptors.len() as u64];
        check_length(parts[1])?;
        let mut bytes = Vec::with_capacity(HEADER + message.len());
        parts.into_iter().for_each(|part| bytes.extend(part.to_ne_bytes()));
        bytes.extend_from_slice(message);
        self.unsent.push_back(Unsent { bytes, written: 0, descriptors: descriptors.into() });
        Ok(())
    }

    /// Whether a queued message was not sent completely.
    pub fn owes(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends the queued messages, within `timeout`.
    ///
    /// # Errors
    ///
    /// [`ChannelError::Interrupted`] and [`ChannelError::TimedOut`]: the next call sends the rest.
    /// After another error nothing is left to be sent.
    pub fn flush(
        &mut self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), ChannelError> {
        let (began, mut watch) = (Instant::now(), Watch::default());
        while let Some(first) = self.unsent.front_mut() {
            let sent = match &first.bytes[first.written..] {
                [] => match first.descriptors.front() {
                    None => {
                        self.unsent.pop_front();
                        continue;
                    }
                    Some(descriptor) => send_descriptor(&self.stream, descriptor).map(|()| {
                        first.descriptors.pop_front();
                    }),
                },
                rest => self.stream.write(rest).map(|bytes| first.written += bytes),
            };
            let Err(error) = sent else { continue };
            match watch.idle(error, self.peer.as_ref(), interrupted) {
                Ok(()) if timeout.is_some_and(|timeout| began.elapsed() >= timeout) => {
                    return Err(ChannelError::TimedOut);
                }
                Ok(()) => {}
                Err(ChannelError::Interrupted) => return Err(ChannelError::Interrupted),
                Err(error) => {
                    self.unsent.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Receives the next message, within `timeout`; the time is looked at in steps of 50 ms.
    ///
    /// # Errors
    ///
    /// As [`ChannelError`] says. What had arrived of a message is kept for the next call.
    pub fn receive(
        &mut self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Message, ChannelError> {
        let (began, mut watch) = (Instant::now(), Watch::default());
        loop {
            match self.read() {
                Ok(None) => {}
                Ok(Some(message)) => return Ok(message),
                Err(ChannelError::Os(error)) => {
                    watch.idle(error, self.peer.as_ref(), interrupted)?;
                    if timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
                        return Err(ChannelError::TimedOut);
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Makes one system call for the next message; returns the message when it is complete.
    fn read(&mut self) -> Result<Option<Message>, ChannelError> {
        let arriving = &mut self.arriving;
        let at = arriving.there;
        let Some([number, length, descriptors]) = arriving.parts() else {
            arriving.there += some(self.stream.read(&mut arriving.header[at..])?)?;
            if let Some([_, length, _]) = arriving.parts() {
                check_length(length)?;
                let length = usize::try_from(length).expect("checked");
                arriving.bytes = vec![0; length];
            }
            return Ok(None);
        };
        if at < HEADER + arriving.bytes.len() {
            arriving.there += some(self.stream.read(&mut arriving.bytes[at - HEADER..])?)?;
        } else if arriving.descriptors < descriptors {
            let descriptor = receive_descriptor(&self.stream)?.ok_or(ChannelError::HungUp)?;
            self.descriptors.push_back(descriptor);
            arriving.descriptors += 1;
        }
        debug_assert_eq!(length, arriving.bytes.len() as u64, "room for the whole message");
        let complete =
            arriving.there == HEADER + arriving.bytes.len() && arriving.descriptors == descriptors;
        Ok(complete.then(|| Message { number, bytes: std::mem::take(arriving).bytes }))
    }

    /// Takes the first of the descriptors that came with messages.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }
}

/// What a call that waits has seen.
#[derive(Debug, Default)]
struct Watch {
    has_ended: bool,
}

impl Watch {
    /// Nothing could be sent or read for a slice, or another error occurred, which is returned.
    fn idle(
        &mut self,
        error: io::Error,
        peer: Option<&ProcessHandle>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), ChannelError> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return Err(ChannelError::HungUp),
            _ => return Err(error.into()),
        }
        if interrupted() {
            return Err(ChannelError::Interrupted);
        }
        if self.has_ended {
            return Err(ChannelError::HungUp);
        }
        // It may have sent something and then ended: so one more look follows.
        self.has_ended = peer.is_some_and(|peer| !peer.is_alive());
        Ok(())
    }
}

fn check_length(bytes: u64) -> Result<(), ChannelError> {
    if bytes > LARGEST_MESSAGE as u64 { Err(ChannelError::TooLarge { bytes }) } else { Ok(()) }
}

/// At least one byte; none are left where the other end is gone.
fn some(bytes: usize) -> Result<usize, ChannelError> {
    if bytes == 0 { Err(ChannelError::HungUp) } else { Ok(bytes) }
}
