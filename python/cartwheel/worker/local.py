"""Channels within one process: pairs of queues."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
from typing import Any

from cartwheel.worker.deadline import Deadline

#: Stands for the end of all messages.
_END = object()


class LocalChannel:
    """An end of a pair of queues within one process; messages are the objects themselves."""

    def __init__(self, inbox: queue.SimpleQueue[Any], outbox: queue.SimpleQueue[Any]) -> None:
        """Receives from ``inbox`` and sends to ``outbox``."""
        self.inbox = inbox
        self.outbox = outbox
        self._announced = 0
        #: The number of the last message that was received, of those that have one.
        self._received = 0

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        """Two ends that face each other."""
        there: queue.SimpleQueue[Any] = queue.SimpleQueue()
        back: queue.SimpleQueue[Any] = queue.SimpleQueue()
        return cls(back, there), cls(there, back)

    def pack(self, content: Any) -> Any:
        """Returns ``content`` itself."""
        return content

    def unpack(self, message: Any) -> Any:
        """Returns ``message`` itself."""
        return message

    def post(self, message: Any) -> None:
        """Puts the message into the other end's inbox."""
        self.outbox.put((0, message))

    def post_once(self, number: int, message: Any) -> None:
        """Puts the message into the other end's inbox, which passes over a second one."""
        self.outbox.put((number, message))

    def announce(self, message: Any) -> None:
        """Puts the message into the other end's inbox, with a number."""
        self._announced += 1
        self.outbox.put((self._announced, message))

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
        """Takes the next message, and passes over one that it took before."""
        return self.receive_within(None)

    def receive_within(self, seconds: float | None) -> Any:
        """Takes the next message, unless that takes longer."""
        deadline = Deadline(seconds)
        while True:
            number, message = self._take(deadline)
            if number == 0 or number > self._received:
                self._received = max(number, self._received)
                return message

    def receive_announced(self, number: int) -> Any:
        """Takes the message of this number, and passes over those of before."""
        while True:
            found, message = self._take(Deadline(None))
            if found >= number:
                return message

    def _take(self, deadline: Deadline) -> tuple[int, Any]:
        try:
            number, message = self.inbox.get(timeout=deadline.left())
        except queue.Empty:
            raise multiprocessing.TimeoutError from None
        if message is _END:
            self.inbox.put((number, message))  # for whoever receives next
            raise EOFError
        return number, message

    def forget(self) -> None:
        """Needs nothing: no signal keeps another thread from taking a message."""

    def hang_up(self) -> None:
        """Puts the end of all messages into the other end's inbox."""
        self.outbox.put((0, _END))

    def close(self) -> None:
        """Needs nothing."""


class OwnChannel(LocalChannel):
    """An end of a pair for the calling thread, which is the worker itself.

    So Ctrl-C may come where the worker is about to take a message, which is nobody's then.
    """

    def forget(self) -> None:
        """Takes what is in the other end's inbox away."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.outbox.get_nowait()
