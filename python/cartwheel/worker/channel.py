"""Channels between a vector environment and one worker, for everything that is not the step path.

A channel carries control calls, faults and whatever does not fit into shared memory. Between
processes, messages are pickled, and native code sends and receives each of them by one call. The
ends within one process are in ``local.py``.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, TypeAlias

import cloudpickle

from cartwheel._cartwheel import LARGEST_MESSAGE, Channel

if TYPE_CHECKING:
    from cartwheel.worker.local import LocalChannel, LocalWorkerChannel
    from cartwheel.worker.stderr import Stderr


#: The caller's end of a channel. No Python code runs in its ``post``, so Ctrl-C does not part it.
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


def message(content: Any) -> bytes:
    """Pickles what another process is to get.

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
    """

    pack = staticmethod(message)
    stderr: Stderr | None = None

    def receive(self, number: int = 0, timeout: float | None = None) -> Any:
        """Receives and unpickles; the bytes always come from cartwheel's own other end.

        Args:
            number: The number under which the message was announced. Messages with lower numbers
                are dropped: they were never received, because an exception such as Ctrl-C came
                first.
            timeout: Seconds to wait; ``None``: no limit.

        Raises:
            EOFError: The worker is gone.
            multiprocessing.TimeoutError: No message came in time.
        """
        return pickle.loads(self.receive_bytes(number, timeout))

    def hang_up(self) -> None:
        """Closes the socket: a worker that waits for a message raises ``EOFError``."""
        super().close()

    def close(self) -> None:
        """Closes the socket and the kept lines of stderr."""
        super().close()
        self.stderr = None


class ProcessWorkerChannel(Channel):
    """The end of a worker in a process of its own.

    Attributes:
        announced: The number of the last message that was announced.
    """

    pack = staticmethod(message)
    unpack = staticmethod(pickle.loads)
    announced = 0

    def announce(self, message: bytes) -> None:
        """Sends a message that the native pool announces to the caller by number, from 1 on."""
        self.announced += 1
        self.post(message, self.announced)

    def receive(self) -> Any:
        """Receives and unpickles."""
        return pickle.loads(self.receive_bytes())
