"""Channels between a vector environment and one worker, for everything that is not the step path.

A channel carries control calls, faults and whatever does not fit into shared memory. Its two ends
have the same methods. The form of a message depends on where the worker runs. This module has the
two ends of a socket, for worker processes; the ends within one process are in ``local.py``.
"""

from __future__ import annotations

import array
import contextlib
import errno
import multiprocessing
import os
import pickle
import queue
import socket
import struct
import threading
import traceback
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import cloudpickle

from cartwheel.worker.deadline import Deadline
from cartwheel.worker.stderr import Stderr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from cartwheel._cartwheel import Descriptor


class Channel(Protocol):
    """One end of a channel."""

    def pack(self, content: Any) -> Any:
        """Turns ``content`` into a message, or raises because it cannot be sent."""

    def unpack(self, message: Any) -> Any:
        """Returns the content of a packed message that came inside another message.

        Raises:
            Exception: The message cannot be read in this process.
        """

    def post(self, message: Any) -> None:
        """Sends a message that :meth:`pack` returned."""

    def post_once(self, number: int, message: Any) -> None:
        """Sends a message that :meth:`pack` returned, and can be repeated after an exception.

        A signal handler may interrupt the call, as Ctrl-C does. A second call with the same number
        sends only the part that was not sent before, and the other end takes the message once.
        Numbers above 0 grow with every message.
        """

    def send_descriptor(self, descriptor: int) -> None:
        """Sends a descriptor; only between processes."""

    def receive_descriptor(self) -> int:
        """Receives a descriptor, which the caller must close; only between processes."""

    def receive(self) -> Any:
        """Waits for a message and returns its content.

        Raises:
            EOFError: The other end is gone.
        """

    def receive_within(self, seconds: float | None) -> Any:
        """Waits at most ``seconds`` for a message and returns its content; ``None``: no limit.

        Raises:
            EOFError: The other end is gone.
            multiprocessing.TimeoutError: No message came in time.
        """

    def receive_announced(self, number: int) -> Any:
        """Waits for the message with this number, and drops messages with lower numbers.

        Such messages were never received, because an exception such as Ctrl-C came first.

        Raises:
            EOFError: The other end is gone.
        """

    def forget(self) -> None:
        """Drops messages that were posted for a call that ended before they were received."""

    def hang_up(self) -> None:
        """Ends the stream of messages; the other end raises :class:`EOFError` at its next wait."""

    def close(self) -> None:
        """Closes this end."""


class AnnouncingChannel(Channel, Protocol):
    """A worker's end of a channel."""

    def announce(self, message: Any) -> None:
        """Sends a message that the native pool announces to the caller by number, from 1 on."""


def pickled(content: Any) -> bytes:
    """Pickles by reference where that works, otherwise by value (lambdas, local classes)."""
    try:
        return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        data: bytes = cloudpickle.dumps(content)
        return data


class WithDescriptor(NamedTuple):
    """A message and the descriptor that is sent after it; only between processes."""

    message: bytes
    descriptor: Descriptor


#: Header of each message from the caller: its length in bytes.
_LENGTH = struct.Struct("<Q")
#: Header of each message from a worker: its number (0 if not announced) and its length in bytes.
_HEADER = struct.Struct("<QQ")
#: The least number of bytes that one read asks for.
_AT_ONCE = 1 << 16


#: The byte with which a descriptor travels. Nothing acknowledges it, unlike in
#: `multiprocessing.reduction`, whose acknowledgements on macOS would get between our messages.
#: macOS may lose what the sender closes before it has arrived. So the sender keeps it open, or
#: another descriptor of it.
_DESCRIPTOR = b"\x01"


def _socket(end: int) -> socket.socket:
    """A socket for another descriptor of the same end, which the caller must close."""
    return socket.fromfd(end, socket.AF_UNIX, socket.SOCK_STREAM)


class _Outgoing:
    """A message that is being written to a socket; an interrupted write can be continued."""

    def __init__(self, number: int, message: bytes | WithDescriptor) -> None:
        self.number = number
        self._descriptor: Descriptor | None = None
        if isinstance(message, WithDescriptor):
            message, self._descriptor = message
        self._parts = (memoryview(_LENGTH.pack(len(message))), memoryview(message))
        #: The number of bytes that each system call has written.
        self._written: list[int] = []

    def write(self, end: int) -> None:
        """Writes the rest of the message."""
        head, body = self._parts
        while (done := sum(self._written)) < len(head) + len(body):
            left = (head[done:], body[max(0, done - len(head)) :])
            # One call into C writes and counts, so that no signal handler runs in between.
            self._written.extend(map(os.writev, (end,), (left,)))
        if self._descriptor is not None and done == len(head) + len(body):
            rights = array.array("i", [self._descriptor.fileno()])
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
            with _socket(end) as through:
                # This is one call into C, too.
                self._written.extend(map(through.sendmsg, ([_DESCRIPTOR],), (control,)))


class ProcessChannel:
    """The caller's end of a private socket pair to a worker process.

    A signal handler may raise an exception between any two Python instructions. If half of a
    message were lost then, all later messages would be garbage. So the call that reads bytes from
    the socket also stores them, and stored bytes are removed in one step. In the same way, the call
    that writes bytes also counts them, so that the rest of the message can be sent later.
    """

    def __init__(
        self,
        end: Connection[Any, Any],
        sentinel: int | None = None,
        lifeline: tuple[int, ...] = (),
    ) -> None:
        """Wraps one end.

        Args:
            end: The end of the socket pair.
            sentinel: A descriptor that becomes readable when the other process ends.
            lifeline: Descriptors that are kept open until then; :meth:`close` closes them.
        """
        self.end = end
        self.sentinel = sentinel
        self._lifeline = list(lifeline)
        #: The last lines of the other process's stderr, if it was asked to keep them.
        self.stderr: Stderr | None = None
        #: Bytes that were read and belong to messages that have not been taken.
        self._chunks: list[bytes] = []
        #: The message that was posted last.
        self._outgoing = _Outgoing(0, b"")

    def keep_stderr(self) -> None:
        """Asks the running worker process to keep the last lines of its stderr."""
        self.stderr = Stderr()
        self.send_descriptor(self.stderr.descriptor)

    def pack(self, content: Any) -> bytes:
        """Pickles ``content``."""
        return pickled(content)

    def unpack(self, message: bytes) -> Any:
        """Unpickles."""
        return pickle.loads(message)

    def post(self, message: bytes) -> None:
        """Sends pickled bytes."""
        self.post_once(0, message)

    def post_once(self, number: int, message: bytes | WithDescriptor) -> None:
        """Sends pickled bytes, or the rest of them if this number was sent in part."""
        if number == 0 or number != self._outgoing.number:
            self._outgoing = _Outgoing(number, message)
        self._outgoing.write(self.end.fileno())

    def send_descriptor(self, descriptor: int) -> None:
        """Sends a descriptor over the socket."""
        with _socket(self.end.fileno()) as through:
            socket.send_fds(through, [_DESCRIPTOR], [descriptor])

    def receive_descriptor(self) -> int:
        """Receives a descriptor, which programs that this process starts do not inherit."""
        with _socket(self.end.fileno()) as through:
            message, descriptors, _, _ = socket.recv_fds(through, len(_DESCRIPTOR), 1)
        if not message:
            raise EOFError
        if not descriptors:
            raise OSError(errno.EMFILE, "a descriptor could not be received: none is left")
        os.set_inheritable(descriptors[0], False)
        return descriptors[0]

    def receive(self) -> Any:
        """Receives and unpickles; the bytes always come from cartwheel's own other end."""
        return self.receive_within(None)

    def receive_within(self, seconds: float | None) -> Any:
        """Receives and unpickles; the time limit holds if the channel has a sentinel."""
        return pickle.loads(self._take(seconds)[1])

    def receive_announced(self, number: int) -> Any:
        """Receives and unpickles the message with this number, and drops earlier ones."""
        while True:
            found, message = self._take()
            if found >= number:
                return pickle.loads(message)

    def _take(self, seconds: float | None = None) -> tuple[int, memoryview]:
        """Takes the next message with its number; the time limit holds if there is a sentinel."""
        deadline = Deadline(seconds)
        while missing := self._missing():
            if self.sentinel is not None:
                ready = connection.wait([self.end, self.sentinel], deadline.left())
                if not ready:
                    raise multiprocessing.TimeoutError
                if self.end not in ready:
                    raise EOFError
            amount = max(missing, _AT_ONCE)
            # One call into C reads and stores, so that no signal handler runs in between.
            self._chunks.extend(map(os.read, (self.end.fileno(),), (amount,)))
            if not self._chunks[-1]:
                raise EOFError
        data = b"".join(self._chunks)
        number, length = _HEADER.unpack_from(data)
        end = _HEADER.size + length
        self._chunks[:] = [data[end:]]
        return number, memoryview(data)[_HEADER.size : end]

    def _missing(self) -> int:
        """The number of bytes of the next message that are known to be missing."""
        there = sum(map(len, self._chunks))
        if there < _HEADER.size:
            return _HEADER.size - there
        if len(self._chunks[0]) < _HEADER.size:
            self._chunks[:] = [b"".join(self._chunks)]
        _, length = _HEADER.unpack_from(self._chunks[0])
        return max(0, _HEADER.size + int(length) - there)

    def leave(self, messages: dict[int, bytes]) -> None:
        """Stores the announced messages of a dead worker process, pickled, by number."""
        os.set_blocking(self.end.fileno(), False)
        self.sentinel = None
        with contextlib.suppress(EOFError, OSError):  # all of it has been read
            while True:
                number, message = self._take()
                if number:
                    messages[number] = bytes(message)

    def forget(self) -> None:
        """Does nothing: no signal keeps a worker process from taking a message."""

    def hang_up(self) -> None:
        """Closes the socket."""
        self.end.close()

    def close(self) -> None:
        """Closes the socket, the lifeline and the kept lines of stderr."""
        self.end.close()
        while self._lifeline:
            os.close(self._lifeline.pop())
        if self.stderr is not None:
            self.stderr.close()
            self.stderr = None


class WorkerChannel(ProcessChannel):
    """The worker's end, which never waits for the caller to read.

    The caller reads the announced messages of a batch once all rows of the batch are done. If a
    worker waited for that while it still had a row of the batch to step, both ends would wait for
    ever. So a thread of its own sends the messages.
    """

    def __init__(self, end: Connection[Any, Any]) -> None:
        """Wraps one end, which programs that environments start do not inherit."""
        super().__init__(end)
        os.set_inheritable(end.fileno(), False)  # `spawn` and `forkserver` made it inheritable
        self._announced = 0
        self._unsent: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        # A daemon thread: a message that is never read must not keep the process from ending.
        self._sender = threading.Thread(target=self._send, name="channel", daemon=True)
        self._sender.start()

    def post(self, message: bytes) -> None:
        """Queues pickled bytes to be sent."""
        self._unsent.put((0, message))

    def announce(self, message: bytes) -> None:
        """Queues pickled bytes to be sent, with the next number."""
        self._announced += 1
        self._unsent.put((self._announced, message))

    def count_on(self, announced: int) -> None:
        """Sets the last number that is used up, for a worker that replaces a dead one."""
        self._announced = announced

    def receive(self) -> Any:
        """Receives and unpickles a message from the caller."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))

    def _read(self, size: int) -> bytearray:
        """Reads exactly ``size`` bytes, because a descriptor may follow."""
        data = bytearray(size)
        missing = memoryview(data)
        while missing:
            amount = os.readv(self.end.fileno(), [missing])
            if amount == 0:
                raise EOFError
            missing = missing[amount:]
        return data

    def finish(self) -> None:
        """Waits until everything is sent, or the caller is gone. Nothing can be sent afterwards."""
        self._unsent.put(None)
        self._sender.join()

    def _send(self) -> None:
        try:
            while (unsent := self._unsent.get()) is not None:
                number, message = unsent
                for part in (_HEADER.pack(number, len(message)), message):
                    left = memoryview(part)
                    while left:
                        left = left[os.write(self.end.fileno(), left) :]
        except ConnectionError:
            pass  # the caller is gone
        except BaseException:
            # Without this thread the caller would wait for messages for ever. So the process ends,
            # and the caller finds it dead.
            traceback.print_exc()
            os._exit(1)
