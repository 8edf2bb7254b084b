"""Channels within one process: pairs of queues."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
from typing import Any

from cartwheel.worker.deadline import Deadline

#: The message that no other message follows.
_END = object()


class LocalChannel:
    """One end of a pair of queues within one process; messages are the objects themselves."""

    def __init__(self, inbox: queue.SimpleQueue[Any], outbox: queue.SimpleQueue[Any]) -> None:
        """Receives from ``inbox`` and sends to ``outbox``."""
        self.inbox = inbox
        self.outbox = outbox
        self._announced = 0
        #: The number of the last numbered message that was received.
        self._received = 0

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        """Makes two ends that are connected to each other."""
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
        """Puts the message into the other end's inbox; a repeated number is dropped there."""
        self.outbox.put((number, message))

    def announce(self, message: Any) -> None:
        """Puts the message into the other end's inbox, with a number."""
        self._announced += 1
        self.outbox.put((self._announced, message))

    def send_descriptor(self, descriptor: int) -> None:
        """Raises: within one process, descriptors need not be sent.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"descriptor {descriptor} is in this process already")

    def receive_descriptor(self) -> int:
        """Raises: within one process, descriptors need not be received.

        Raises:
            TypeError: Always.
        """
        raise TypeError("descriptors are in this process already")

    def receive(self) -> Any:
        """Takes the next message, and drops repeated ones."""
        return self.receive_within(None)

    def receive_within(self, seconds: float | None) -> Any:
        """Takes the next message, if one comes within ``seconds``."""
        deadline = Deadline(seconds)
        while True:
            number, message = self._take(deadline)
            if number == 0 or number > self._received:
                self._received = max(number, self._received)
                return message

    def receive_announced(self, number: int) -> Any:
        """Takes the message with this number, and drops earlier ones."""
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
            self.inbox.put((number, message))  # for the next wait
            raise EOFError
        return number, message

    def forget(self) -> None:
        """Does nothing: no signal keeps another thread from taking a message."""

    def hang_up(self) -> None:
        """Puts the final message into the other end's inbox."""
        self.outbox.put((0, _END))

    def close(self) -> None:
        """Does nothing."""


class OwnChannel(LocalChannel):
    """One end of a channel between the caller and a worker that runs on the calling thread.

    Here, Ctrl-C may interrupt the worker before it takes a message, which then stays in the queue.
    """

    def forget(self) -> None:
        """Empties the other end's inbox."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.outbox.get_nowait()
