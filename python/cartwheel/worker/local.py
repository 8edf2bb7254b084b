"""Channels within one process: pairs of queues."""

from __future__ import annotations

import multiprocessing
import queue
from typing import TYPE_CHECKING, Any

from cartwheel.worker.deadline import Deadline

if TYPE_CHECKING:
    from cartwheel._cartwheel import Descriptor

#: The message that no other message follows.
_END = object()


def _itself(content: Any) -> Any:
    return content


class LocalChannel:
    """The caller's end of a pair of queues; messages are the objects themselves."""

    pack = staticmethod(_itself)

    def __init__(self) -> None:
        """Makes the queues."""
        #: What the worker sends, with numbers; and what it receives.
        self.inbox: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.post = self.outbox.put

    def receive(self, number: int = 0, timeout: float | None = None) -> Any:
        """Takes the next message with at least this number, as a ``ProcessChannel`` does."""
        deadline = Deadline(timeout)
        while True:
            try:
                found, content = self.inbox.get(timeout=deadline.left())
            except queue.Empty:
                raise multiprocessing.TimeoutError from None
            if content is _END:
                self.inbox.put((found, content))  # for the next wait
                raise EOFError
            if found >= number:
                return content

    def hang_up(self) -> None:
        """Puts the final message into the worker's inbox: it raises ``EOFError``."""
        self.outbox.put(_END)

    def close(self) -> None:
        """Does nothing."""


class LocalWorkerChannel:
    """The worker's end of a pair of queues."""

    pack = staticmethod(_itself)
    unpack = staticmethod(_itself)

    def __init__(self, other: LocalChannel) -> None:
        """Sends to ``other`` and receives from it."""
        self._inbox = other.outbox
        self._outbox = other.inbox
        self._announced = 0

    def post(self, message: Any) -> None:
        """Puts the message into the other end's inbox."""
        self._outbox.put((0, message))

    def announce(self, message: Any) -> None:
        """Puts the message into the other end's inbox, with a number."""
        self._announced += 1
        self._outbox.put((self._announced, message))

    def receive(self) -> Any:
        """Takes the next message."""
        message = self._inbox.get()
        if message is _END:
            raise EOFError
        return message

    def take_descriptor(self) -> Descriptor:
        """Raises: within one process, descriptors need not be sent.

        Raises:
            TypeError: Always.
        """
        raise TypeError("descriptors are in this process already")

    def hang_up(self) -> None:
        """Puts the final message into the other end's inbox."""
        self._outbox.put((0, _END))
