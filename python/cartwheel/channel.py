"""Channels between a vector environment and one worker, for everything that is not the step path.

A channel carries control calls, faults and what does not fit into shared memory. Its two ends have
the same methods; what a message is depends on where the worker runs.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import os
import pickle
import queue
from multiprocessing import connection, reduction
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle

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

    def pump(self) -> None:
        """Takes in what has arrived, so that the other end can go on sending."""

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


#: Bytes that fit into a socket's buffer anywhere: sending more may wait for the other end.
_SMALL = 32 * 1024


class ProcessChannel:
    """An end of a private socket pair to another process.

    Messages of any length go both ways without a deadlock: whoever waits for the other end, to send
    or for shared memory, takes in meanwhile what that end sends.
    """

    def __init__(self, end: Connection[Any, Any], sentinel: int | None = None) -> None:
        """Wraps one end.

        Args:
            end: The end of the socket pair.
            sentinel: A descriptor that becomes readable when the other process ends.
        """
        self.end = end
        self.sentinel = sentinel
        #: Messages that were taken in before somebody asked for them.
        self._arrived: collections.deque[bytes] = collections.deque()

    def pack(self, content: Any) -> bytes:
        """Pickles ``content``."""
        return pickled(content)

    def post(self, message: bytes) -> None:
        """Sends pickled bytes."""
        if self.sentinel is None or len(message) <= _SMALL:
            self.end.send_bytes(message)
            return
        # The worker may be sending, too, and read nothing before it is heard.
        with concurrent.futures.ThreadPoolExecutor(1) as sender:
            sending = sender.submit(self.end.send_bytes, message)
            while not sending.done():
                self.pump()
                concurrent.futures.wait([sending], timeout=0.001)
        sending.result()

    def pump(self) -> None:
        """Takes in what has arrived."""
        with contextlib.suppress(EOFError, ConnectionError):  # found when it is waited for
            while self.end.poll():
                self._arrived.append(self.end.recv_bytes())

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
        if self._arrived:
            return pickle.loads(self._arrived.popleft())
        if self.sentinel is not None:
            ready = connection.wait([self.end, self.sentinel])
            if self.end not in ready:
                raise EOFError
        return pickle.loads(self.end.recv_bytes())

    def close(self) -> None:
        """Closes the socket."""
        self.end.close()


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

    def pump(self) -> None:
        """Needs nothing: queues have room."""

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
