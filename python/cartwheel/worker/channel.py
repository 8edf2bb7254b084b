"""Channels between a vector environment and one worker, for everything that is not the step path.

A channel carries control calls, faults and what does not fit into shared memory. Its two ends have
the same methods; what a message is depends on where the worker runs. Here are the ends of a socket,
for worker processes; those within one process are in ``local.py``.
"""

from __future__ import annotations

import array
import contextlib
import multiprocessing
import os
import pickle
import queue
import socket
import struct
import threading
import traceback
from multiprocessing import connection, reduction
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
        """Turns ``content`` into a message, or raises because it cannot travel."""

    def unpack(self, message: Any) -> Any:
        """The content of what :meth:`pack` of the other end returned, if it came within another.

        Raises:
            Exception: It cannot be read here.
        """

    def post(self, message: Any) -> None:
        """Sends what :meth:`pack` returned."""

    def post_once(self, number: int, message: Any) -> None:
        """Sends what :meth:`pack` returned; again, if an exception such as Ctrl-C came.

        What is called again with the same number sends only what was not sent before, and the other
        end takes the message once. Numbers above 0 grow.
        """

    def send_descriptor(self, descriptor: int, pid: int) -> None:
        """Sends a descriptor to process ``pid``; only between processes."""

    def receive_descriptor(self) -> int:
        """Receives a descriptor, which is the caller's then; only between processes."""

    def receive(self) -> Any:
        """Waits for a message and returns its content.

        Raises:
            EOFError: The other end is gone.
        """

    def receive_within(self, seconds: float | None) -> Any:
        """As :meth:`receive`, for so long; ``None`` for as long as it takes.

        Raises:
            EOFError: The other end is gone.
            multiprocessing.TimeoutError: No message came.
        """

    def receive_announced(self, number: int) -> Any:
        """Waits for the message of this number, and passes over those of before.

        They are what nobody received, because an exception such as Ctrl-C came first.

        Raises:
            EOFError: The other end is gone.
        """

    def forget(self) -> None:
        """Drops messages that were posted for a call which has ended without taking them."""

    def hang_up(self) -> None:
        """Ends the messages to the other end, which raises where it waits for one."""

    def close(self) -> None:
        """Closes this end."""


class AnnouncingChannel(Channel, Protocol):
    """A worker's end of a channel."""

    def announce(self, message: Any) -> None:
        """Sends what the caller is told of by the native pool, which counts: the first is 1."""


def pickled(content: Any) -> bytes:
    """Pickles by reference where that works, otherwise by value (lambdas, local classes)."""
    try:
        return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        data: bytes = cloudpickle.dumps(content)
        return data


class WithDescriptor(NamedTuple):
    """A message that a descriptor follows; only between processes."""

    message: bytes
    descriptor: Descriptor


#: Before each message of the caller: its length in bytes.
_LENGTH = struct.Struct("<Q")
#: Before each message of a worker: its number, 0 if it was not announced, and its length in bytes.
_HEADER = struct.Struct("<QQ")
#: Bytes that are read at once, at least.
_AT_ONCE = 1 << 16


class _Outgoing:
    """A message on its way into the socket; how far it is, is known whatever comes in between."""

    def __init__(self, number: int, message: bytes | WithDescriptor) -> None:
        self.number = number
        self._descriptor: Descriptor | None = None
        if isinstance(message, WithDescriptor):
            message, self._descriptor = message
        self._parts = (memoryview(_LENGTH.pack(len(message))), memoryview(message))
        #: Bytes that each call has written.
        self._written: list[int] = []

    def write(self, end: int) -> None:
        """Writes what is left of it."""
        head, body = self._parts
        while (done := sum(self._written)) < len(head) + len(body):
            left = (head[done:], body[max(0, done - len(head)) :])
            # Written and counted by one call of C, between whose parts no handler runs.
            self._written.extend(map(os.writev, (end,), (left,)))
        if self._descriptor is not None and done == len(head) + len(body):
            rights = array.array("i", [self._descriptor.fileno()])
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
            with socket.fromfd(end, socket.AF_UNIX, socket.SOCK_STREAM) as through:
                # A byte that says how many there are, as `multiprocessing` has it; likewise.
                self._written.extend(map(through.sendmsg, ([b"\x01"],), (control,)))


class ProcessChannel:
    """The caller's end of a private socket pair to a worker process.

    A signal handler may raise between any two steps of Python. So what is read from the socket is
    kept by the same call that reads it, and what has been kept is only ever cut in one step: half
    of a message is never lost, which would make garbage of all that follow. Nor is it ever sent:
    what was written of a message is counted by the call that writes, and the rest can follow.
    """

    def __init__(self, end: Connection[Any, Any], sentinel: int | None = None) -> None:
        """Wraps one end.

        Args:
            end: The end of the socket pair.
            sentinel: A descriptor that becomes readable when the other process ends.
        """
        self.end = end
        self.sentinel = sentinel
        #: What the other process keeps of its stderr, if it was asked to.
        self.stderr: Stderr | None = None
        #: What was read and belongs to messages that have not been taken.
        self._chunks: list[bytes] = []
        #: The message that was posted last.
        self._outgoing = _Outgoing(0, b"")

    def keep_stderr(self, pid: int) -> None:
        """Asks process ``pid``, a worker that has begun, to keep the end of what goes to stderr."""
        self.stderr = Stderr()
        self.send_descriptor(self.stderr.descriptor, pid)

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
        """Sends pickled bytes, or what is left of those of this number."""
        if number == 0 or number != self._outgoing.number:
            self._outgoing = _Outgoing(number, message)
        self._outgoing.write(self.end.fileno())

    def send_descriptor(self, descriptor: int, pid: int) -> None:
        """Sends a descriptor over the socket."""
        reduction.send_handle(self.end, descriptor, pid)

    def receive_descriptor(self) -> int:
        """Receives a descriptor, which programs started from here do not inherit."""
        descriptor = reduction.recv_handle(self.end)
        os.set_inheritable(descriptor, False)
        return descriptor

    def receive(self) -> Any:
        """Receives and unpickles; only bytes of our own worker or vector environment come here."""
        return self.receive_within(None)

    def receive_within(self, seconds: float | None) -> Any:
        """Receives and unpickles, unless that takes longer."""
        return pickle.loads(self._take(seconds)[1])

    def receive_announced(self, number: int) -> Any:
        """Receives and unpickles the message of this number, and passes over those of before."""
        while True:
            found, message = self._take()
            if found >= number:
                return pickle.loads(message)

    def _take(self, seconds: float | None = None) -> tuple[int, memoryview]:
        """The next message and its number; for so long, if the channel has a sentinel."""
        deadline = Deadline(seconds)
        while missing := self._missing():
            if self.sentinel is not None:
                ready = connection.wait([self.end, self.sentinel], deadline.left())
                if not ready:
                    raise multiprocessing.TimeoutError
                if self.end not in ready:
                    raise EOFError
            amount = max(missing, _AT_ONCE)
            # Read and kept by one call of C, between whose parts no handler runs.
            self._chunks.extend(map(os.read, (self.end.fileno(),), (amount,)))
            if not self._chunks[-1]:
                raise EOFError
        data = b"".join(self._chunks)
        number, length = _HEADER.unpack_from(data)
        end = _HEADER.size + length
        self._chunks[:] = [data[end:]]
        return number, memoryview(data)[_HEADER.size : end]

    def _missing(self) -> int:
        """Bytes that are missing of the next message, as far as is known."""
        there = sum(map(len, self._chunks))
        if there < _HEADER.size:
            return _HEADER.size - there
        if len(self._chunks[0]) < _HEADER.size:
            self._chunks[:] = [b"".join(self._chunks)]
        _, length = _HEADER.unpack_from(self._chunks[0])
        return max(0, _HEADER.size + int(length) - there)

    def leave(self, messages: dict[int, bytes]) -> None:
        """Leaves what was announced and has come, pickled, by number. The other end is dead."""
        os.set_blocking(self.end.fileno(), False)
        self.sentinel = None
        with contextlib.suppress(EOFError, OSError):  # nothing is there any more
            while True:
                number, message = self._take()
                if number:
                    messages[number] = bytes(message)

    def forget(self) -> None:
        """Needs nothing: no signal keeps a worker process from taking a message."""

    def hang_up(self) -> None:
        """Closes the socket."""
        self.end.close()

    def close(self) -> None:
        """Closes the socket, and what else there is."""
        self.end.close()
        if self.stderr is not None:
            self.stderr.close()
            self.stderr = None


class WorkerChannel(ProcessChannel):
    """The worker's end, which never waits for the caller to read.

    The caller reads what a row announced when the batch of the row is whole. A worker that waited
    for that, with another row of the batch still to step, would wait for ever; so a thread sends.
    """

    def __init__(self, end: Connection[Any, Any]) -> None:
        """Wraps one end, which programs that environments start do not inherit."""
        super().__init__(end)
        os.set_inheritable(end.fileno(), False)  # `spawn` and `forkserver` handed it over as one
        self._announced = 0
        self._unsent: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        # A daemon: what nobody reads any more must not keep the process from ending.
        self._sender = threading.Thread(target=self._send, name="channel", daemon=True)
        self._sender.start()

    def post(self, message: bytes) -> None:
        """Leaves pickled bytes to be sent after those of before."""
        self._unsent.put((0, message))

    def announce(self, message: bytes) -> None:
        """Leaves pickled bytes to be sent, with a number."""
        self._announced += 1
        self._unsent.put((self._announced, message))

    def count_on(self, announced: int) -> None:
        """Numbers what it announces after this number, as the next process of a worker does."""
        self._announced = announced

    def receive(self) -> Any:
        """Receives and unpickles a message of the caller."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))

    def _read(self, size: int) -> bytearray:
        """So many bytes, and no more: a descriptor may follow."""
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
            # The caller would wait for ever for what a mute process has to say. It is found dead.
            traceback.print_exc()
            os._exit(1)
