"""Channels between a vector environment and one worker, for everything that is not the step path.

A channel carries control calls, faults and what does not fit into shared memory. Its two ends have
the same methods; what a message is depends on where the worker runs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import threading
from multiprocessing import connection, reduction
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle

from cartwheel.stderr import Stderr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class Channel(Protocol):
    """One end of a channel."""

    def pack(self, content: Any) -> Any:
        """Turns ``content`` into a message, or raises because it cannot travel."""

    def post(self, message: Any) -> None:
        """Sends what :meth:`pack` returned."""

    def send_descriptor(self, descriptor: int, pid: int) -> None:
        """Sends a descriptor to process ``pid``; only between processes."""

    def receive_descriptor(self) -> int:
        """Receives a descriptor, which is the caller's then; only between processes."""

    def receive(self) -> Any:
        """Waits for a message and returns its content.

        Raises:
            EOFError: The other end is gone.
        """

    def close(self) -> None:
        """Closes this end."""


def pickled(content: Any) -> bytes:
    """Pickles by reference where that works, otherwise by value (lambdas, local classes)."""
    try:
        return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        data: bytes = cloudpickle.dumps(content)
        return data


class ProcessChannel:
    """An end of a private socket pair to another process."""

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

    def keep_stderr(self, pid: int) -> None:
        """Asks process ``pid``, a worker that has begun, to keep the end of what goes to stderr."""
        self.stderr = Stderr()
        self.send_descriptor(self.stderr.descriptor, pid)

    def pack(self, content: Any) -> bytes:
        """Pickles ``content``."""
        return pickled(content)

    def post(self, message: bytes) -> None:
        """Sends pickled bytes."""
        self.end.send_bytes(message)

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
        if self.sentinel is not None:
            ready = connection.wait([self.end, self.sentinel])
            if self.end not in ready:
                raise EOFError
        return pickle.loads(self.end.recv_bytes())

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
        self._unsent: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # A daemon: what nobody reads any more must not keep the process from ending.
        threading.Thread(target=self._send, name="channel", daemon=True).start()

    def post(self, message: bytes) -> None:
        """Leaves pickled bytes to be sent after those of before."""
        self._unsent.put(message)

    def _send(self) -> None:
        with contextlib.suppress(OSError):  # the caller is gone
            while True:
                self.end.send_bytes(self._unsent.get())


class LocalChannel:
    """An end of a pair of queues within one process; messages are the objects themselves."""

    def __init__(self, inbox: queue.SimpleQueue[Any], outbox: queue.SimpleQueue[Any]) -> None:
        """Receives from ``inbox`` and sends to ``outbox``."""
        self.inbox = inbox
        self.outbox = outbox

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        """Two ends that face each other."""
        there: queue.SimpleQueue[Any] = queue.SimpleQueue()
        back: queue.SimpleQueue[Any] = queue.SimpleQueue()
        return cls(back, there), cls(there, back)

    def pack(self, content: Any) -> Any:
        """Returns ``content`` itself."""
        return content

    def post(self, message: Any) -> None:
        """Puts the message into the other end's inbox."""
        self.outbox.put(message)

    def send_descriptor(self, descriptor: int, pid: int) -> None:
        """Raises: within one process there is nothing to send.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"descriptor {descriptor} is in process {pid} already")

    def receive_descriptor(self) -> int:
        """Raises: within one process there is nothing to receive.

        Raises:
            TypeError: Always.
        """
        raise TypeError("descriptors are in this process already")

    def receive(self) -> Any:
        """Takes the next message."""
        return self.inbox.get()

    def close(self) -> None:
        """Needs nothing."""
