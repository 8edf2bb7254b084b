"""Channels between a vector environment and one worker, outside of the step path.

A channel carries control calls, faults and data that does not fit into shared memory. Between
processes, messages are pickled, and native code sends and receives each of them by one call. Within
one process, channels are pairs of queues.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import marshal
import multiprocessing
import pickle
import queue
import sys
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import cloudpickle

from cartwheel._cartwheel import LARGEST_MESSAGE, Channel
from cartwheel._internal.process import take

if TYPE_CHECKING:
    import collections
    from types import FunctionType

    from cartwheel._cartwheel import Descriptor
    from cartwheel.workers.retirement import Handoff
    from cartwheel.workers.stderr import Stderr

#: The caller's end of a channel. No Python code runs in its ``post``, so Ctrl-C cannot split it.
#: What its ``receive`` returns has to be unpacked: an ``EOFError`` of ``receive`` is the end of the
#: worker, and one of ``unpack`` was raised by the code of an object in the message.
CallerEnd: TypeAlias = "ProcessChannel | LocalChannel"
#: A worker's end of a channel; it never waits for the caller to receive.
WorkerEnd: TypeAlias = "ProcessWorkerChannel | LocalWorkerChannel"


def pickled(content: Any) -> bytes:
    """Pickles by reference where that works, otherwise by value (lambdas, local classes)."""
    try:
        return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        data: bytes = cloudpickle.dumps(content)
        return data


class MainFunction:
    """A function of the main module in a message, which arrives as the function itself.

    A worker that was forked, or a notebook's, has the main module of its start: by reference, a
    function that was defined later would be missing there, or be an older one of the same name.
    The worker's own function is taken if it has the same code, so that classes of the main module
    are the worker's; otherwise the function is sent by value.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    @staticmethod
    def wrap(function: Any) -> Any:
        """Returns a function of the main module in such an object, and others as they are."""
        is_main = getattr(function, "__module__", None) == "__main__"
        return MainFunction(function) if is_main and inspect.isfunction(function) else function

    def __reduce__(self) -> tuple[Any, ...]:
        function = self._function
        return _own_or_sent, (function.__qualname__, _form(function), cloudpickle.dumps(function))


def _form(function: FunctionType) -> tuple[bytes, bytes]:
    """Returns what makes two functions of one name the same: the code and the defaults."""
    defaults = function.__defaults__, function.__kwdefaults__
    return marshal.dumps(function.__code__), cloudpickle.dumps(defaults)


def _own_or_sent(name: str, form: tuple[bytes, bytes], data: bytes) -> Any:
    own = getattr(sys.modules["__main__"], name, None)
    return own if inspect.isfunction(own) and _form(own) == form else cloudpickle.loads(data)


def message(content: Any) -> bytes:
    """Pickles a message for another process.

    Raises:
        ValueError: It has more than ``LARGEST_MESSAGE`` bytes.
        Exception: It cannot be pickled.
    """
    data = pickled(content)
    if len(data) > LARGEST_MESSAGE:
        raise ValueError(
            f"a message between this process and a worker may have {LARGEST_MESSAGE} bytes "
            f"(1 GiB), this one has {len(data)}"
        )
    return data


class ProcessChannel(Channel):
    """The caller's end of a channel to a worker process.

    Attributes:
        stderr: The last lines of the process's stderr.
        handoff: What the process leaves when it retires, if it may do so.
    """

    pack = staticmethod(message)
    #: The bytes always come from cartwheel's own other end.
    unpack = staticmethod(pickle.loads)
    receive = Channel.receive_bytes
    stderr: Stderr | None = None
    handoff: Handoff | None = None

    def hang_up(self) -> None:
        """Closes the socket: a worker that waits for a message raises ``EOFError``."""
        super().close()

    def close(self) -> None:
        """Closes the socket, the kept lines of stderr and the handoff."""
        super().close()
        self.stderr = self.handoff = None


class ProcessWorkerChannel(Channel):
    """The end of a worker in a process of its own.

    Attributes:
        announced: Messages that the native pool announces to the caller have higher numbers.
    """

    pack = staticmethod(message)
    unpack = staticmethod(pickle.loads)
    announced = 0

    def receive(self) -> Any:
        """Receives and unpickles."""
        return pickle.loads(self.receive_bytes())


#: The last message of a queue.
_END = object()


def _itself(content: Any) -> Any:
    return content


class LocalChannel:
    """The caller's end of a pair of queues; messages are the objects themselves."""

    pack = staticmethod(_itself)
    unpack = staticmethod(_itself)

    def __init__(self) -> None:
        #: Messages from the worker, with numbers, and messages to the worker.
        self.inbox: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.post = self.outbox.put

    def flush(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as of a ProcessChannel
        """Returns that nothing is left to be sent: a queue takes each message at once."""
        return True

    def receive(self, number: int = 0, timeout: float | None = None) -> Any:
        """Takes the next message with at least this number, as a ``ProcessChannel`` does."""
        deadline = Deadline(timeout)
        while True:
            try:
                found, content = take(self.inbox, deadline.left())
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
    """The worker's end of a pair of queues.

    Attributes:
        announced: As of a ``ProcessWorkerChannel``.
        outbox: The queue for messages to the caller, with their numbers.
    """

    pack = staticmethod(_itself)
    unpack = staticmethod(_itself)
    announced = 0

    def __init__(self, other: LocalChannel) -> None:
        """Sends to ``other`` and receives from it."""
        self._inbox = other.outbox
        self.outbox = other.inbox

    def post(self, message: Any, number: int = 0) -> None:
        """Puts the message into the other end's inbox."""
        self.outbox.put((number, message))

    def receive(self) -> Any:
        """Takes the next message."""
        message = self._inbox.get()
        if message is _END:
            raise EOFError
        return message

    def take_all(self, messages: collections.deque[Any]) -> None:
        """Moves all messages that are there to the end of ``messages``.

        One function in C moves them, so the exception of a signal handler loses none.
        """
        with contextlib.suppress(queue.Empty):
            messages.extend(iter(self._inbox.get_nowait, _END))
            self._inbox.put(_END)  # for the next wait

    def take_descriptor(self) -> Descriptor:
        """Raises: within one process, descriptors need not be sent.

        Raises:
            TypeError: Always.
        """
        raise TypeError("descriptors are in this process already")

    def hang_up(self) -> None:
        """Puts the final message into the other end's inbox."""
        self.outbox.put((0, _END))


@dataclasses.dataclass(frozen=True)
class Deadline:
    """The time at which a wait ends.

    Attributes:
        seconds: Seconds of the whole wait; ``None`` for no limit.
        begin: When the wait began, by the monotonic clock.
    """

    seconds: float | None
    begin: float = dataclasses.field(default_factory=time.monotonic)

    def left(self) -> float | None:
        """Returns the seconds that are left, at least 0; ``None`` for no limit."""
        if self.seconds is None:
            return None
        return max(0.0, self.begin + self.seconds - time.monotonic())
