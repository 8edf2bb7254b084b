"""Worker processes that end between two episodes of their row, and what they leave.

A simulator that leaks memory, or slows down over time, is kept in bounds by a new process. A worker
of one row asks before each episode whether it has served long enough. If so, it writes what the
next process needs into a file without a name, closes its environment and ends. The caller finds the
process dead, replaces it as any other, and the new process repeats the task: a reset, or in
``SAME_STEP`` the step that ended the episode, whose result the file has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import re
import resource
import struct
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown
from cartwheel.workers.envs.env_chain import OF_MANY_EPISODES, Chain
from cartwheel.workers.stderr import nameless_file

if TYPE_CHECKING:
    from cartwheel._cartwheel import Descriptor
    from cartwheel.workers.restart_policy import RestartPolicy

#: The length of what a worker leaves, at the beginning of the file; 0 until all is written.
_HEAD = struct.Struct("<Q")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")


def as_memory_limit(amount: Any) -> int | None:
    """Returns ``max_worker_memory`` in bytes.

    Args:
        amount: An integer, or a number with a unit: ``"4GiB"``, ``"512 MB"``; ``None``: no limit.

    Raises:
        ValueError: It is something else, or not positive.
    """
    if amount is None:
        return None
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    if found is not None and found[2].upper() in _UNITS:
        size = int(float(found[1]) * _UNITS[found[2].upper()])
    elif isinstance(amount, int | float | np.integer) and not isinstance(amount, bool):
        size = int(amount) if amount == amount // 1 else 0
    else:
        size = 0
    if size < 1:
        raise ValueError(
            "`max_worker_memory` must be a positive number of bytes or a text such as '4GiB' or "
            f"'512MB', got {shown(amount)}."
        )
    return size


def memory_of_this_process() -> int:
    """Returns the resident memory of this process in bytes; where unknown, its maximum so far."""
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - faster
            return int(file.read().split()[1]) * resource.getpagesize()
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def check_memory(present: dict[int, int], max_worker_memory: int | None, advice: str = "") -> None:
    """Checks that workers have less memory than the limit after they made their environments.

    Args:
        present: The memory of each worker.
        max_worker_memory: The limit.
        advice: More for the text of the error.

    Raises:
        ValueError: Every episode would begin in a new process.
    """
    worker = max(present, key=present.__getitem__)
    if max_worker_memory is not None and present[worker] >= max_worker_memory:
        raise ValueError(
            f"`max_worker_memory` is {max_worker_memory:,} bytes, and worker {worker} has "
            f"{present[worker]:,} before its first episode: set a higher limit{advice}"
        )


class Handoff:
    """The caller's view of what a worker process leaves when it retires.

    Attributes:
        descriptor: The file, which must be sent to the worker.
    """

    def __init__(self) -> None:
        self.descriptor = nameless_file("cartwheel-handoff")

    def read(self) -> dict[str, Any] | None:
        """Returns what the process left; ``None`` if it did not retire."""
        file = self.descriptor.fileno()
        head = os.pread(file, _HEAD.size, 0)
        length = _HEAD.unpack(head)[0] if len(head) == _HEAD.size else 0
        if not length:
            return None
        left: dict[str, Any] = pickle.loads(_read(file, length))
        return left


def _read(file: int, length: int) -> bytes:
    parts, at = [], _HEAD.size
    while length:
        parts.append(os.pread(file, length, at))
        at, length = at + len(parts[-1]), length - len(parts[-1])
    return b"".join(parts)


def write_handoff(descriptor: Descriptor, left: bytes) -> None:
    """Writes a pickled dictionary, which the caller's :class:`Handoff` reads.

    Raises:
        OSError: The memory is used up.
    """
    data, file, at = memoryview(left), descriptor.fileno(), _HEAD.size
    os.pwrite(file, bytes(_HEAD.size), 0)
    while at - _HEAD.size < len(data):
        at += os.pwrite(file, data[at - _HEAD.size :], at)
    os.pwrite(file, _HEAD.pack(len(data)), 0)


def flush_streams() -> None:
    """Writes what this process has printed, before it ends without the end of its interpreter.

    As at the end of an interpreter, streams that cannot be written to are left: an environment may
    have closed or replaced them, and the reader of a pipe may be gone.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


@dataclasses.dataclass
class Lifetime:
    """The life of a worker process, which its limits end.

    Attributes:
        restart_policy: The limits.
        episodes: Episodes that it has begun.
    """

    restart_policy: RestartPolicy
    episodes: int = 0

    def reason_to_end(self) -> dict[str, int] | None:
        """Counts the episode that is about to begin, unless the process should end before it.

        Returns:
            The limit that is reached, by its name; ``None`` if the episode may begin.
        """
        policy = self.restart_policy
        limit, max_memory = policy.max_episodes_per_worker, policy.max_worker_memory
        if limit is not None and self.episodes >= limit:
            return {"episodes": self.episodes}
        if max_memory is not None and self.episodes:
            memory = memory_of_this_process()
            if memory > max_memory:
                return {"episodes": self.episodes, "memory": memory}
        self.episodes += 1
        return None


def statistics_of(env: Any, row: int) -> dict[int, bytes]:
    """Returns the attributes of Gymnasium's wrappers that gather values over many episodes.

    They are found by their place in the chain of wrappers.
    """
    return Chain(env).attributes_by_place(OF_MANY_EPISODES, row)


def continue_statistics(env: Any, saved: dict[int, bytes]) -> None:
    """Sets the attributes that :func:`statistics_of` returned, in the same chain of wrappers."""
    Chain(env).set_attributes_by_place(saved)
