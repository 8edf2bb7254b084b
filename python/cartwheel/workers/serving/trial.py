"""One environment that a worker makes, plays for a moment and closes, to learn what it needs.

Waiting and computing are told apart by processor time: of the thread or process that steps the
environment and, on Linux, of the processes that it has started. Time for which they wait for a
processor, because other programs compute, counts as neither. The host of a virtual machine takes
processors away without a word, but a thread that waits gives its processor up, which is counted.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from cartwheel.workers.faults import described
from cartwheel.workers.retirement import memory_of_this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartwheel._internal.arguments import EnvFn

#: The places of the parent, and of the four processor times, in the part of ``/proc/<pid>/stat``
#: that follows the name.
_PARENT, _TIMES = 1, slice(11, 15)


@dataclasses.dataclass(frozen=True)
class Measured:
    """Times and memory of one environment.

    Attributes:
        start_up: Seconds of its function, its first reset and its first step.
        steps: Steps that were measured.
        seconds: Seconds of these steps, and of the resets between them.
        cpu_share: The part of these seconds for which a processor was used, from 0 to 1.
        own_share: The part for which its own thread or process used one.
        memory: Bytes of its process, and of those that it started; what processes share counts
            once. 0 in a thread.
        failure: The exception that ended the measurement early, as a text.
    """

    start_up: float
    steps: int
    seconds: float
    cpu_share: float
    own_share: float
    memory: int
    failure: str | None = None


class MakesTrial:
    """A function that makes a :class:`Trial`."""

    def __init__(self, env_fn: EnvFn, *, is_remote: bool) -> None:
        """Keeps the function of the environment; ``is_remote``: a process of its own calls it."""
        self.env_fn = env_fn
        self.is_remote = is_remote

    def __call__(self) -> Trial:
        """Makes the environment."""
        usage, began = _Usage(self.is_remote), time.perf_counter()
        return Trial(self.env_fn(), usage, began)


class Trial(gym.Env[Any, Any]):
    """An environment that is only measured: its spaces and results stay in the worker."""

    observation_space = Discrete(1)
    action_space = Discrete(1)

    def __init__(self, env: Any, usage: _Usage, began: float) -> None:
        self._env = env
        self._usage = usage
        self._began = began

    def measure(self, seconds: float) -> Measured:
        """Plays random actions for ``seconds``, and at least one step after the first.

        The environment is reset with the seed 0, and actions come from a copy of its space.
        """
        steps, shares, start_up, elapsed, failure = 0, (1.0, 1.0), 0.0, 0.0, None
        try:
            self._env.reset(seed=0)
            actions = copy.deepcopy(self._env.action_space)
            actions.seed(0)
            self._step(actions.sample())
            before = self._usage.of_children(), self._usage.own()
            waits = _waits()
            began = time.perf_counter()
            start_up = began - self._began
            while elapsed < seconds or not steps:
                self._step(actions.sample())
                steps += 1
                elapsed = time.perf_counter() - began
            never_waited = waits is not None and _waits() == waits
            own = self._usage.own()  # first, because it takes a processor to look for children
            spent = np.subtract((self._usage.of_children(), own), before)
            cpu, delay = spent.sum(0).tolist()
            # Clocks of the system tick a hundred times a second.
            could_run = max(elapsed - delay, cpu)
            if could_run > 0 and not never_waited:
                shares = cpu / could_run, float(spent[1, 0]) / could_run
        except BaseException as error:  # an environment's own code may raise anything
            failure, _ = described(error)
        return Measured(start_up, steps, elapsed, *shares, self._usage.memory(), failure)

    def _step(self, action: Any) -> None:
        _, _, terminated, truncated, _ = self._env.step(action)
        if terminated or truncated:
            self._env.reset()

    def close(self) -> None:
        """Closes the environment."""
        if hasattr(self._env, "close"):
            self._env.close()


class _Usage:
    """Processor time and memory of this thread or process, and of processes started from now on."""

    def __init__(self, is_remote: bool) -> None:  # noqa: FBT001 - a private class with one flag
        """Takes note of the processes that exist; ``is_remote``: this process has no other use."""
        self._is_remote = is_remote
        self._before = {pid for pid, _ in _descendants()}

    def own(self) -> tuple[float, float]:
        """Returns the processor time so far, and the time spent in waiting for one, in seconds."""
        cpu = time.process_time() if self._is_remote else time.thread_time()
        return cpu, _delay(f"/proc/self/task/{threading.get_native_id()}")

    def of_children(self) -> tuple[float, float]:
        """Returns the same of the processes."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, delay = ended.ru_utime + ended.ru_stime, 0.0
        for pid, fields in self._started():
            cpu += sum(map(int, fields[_TIMES])) / os.sysconf("SC_CLK_TCK")
            delay += _delay(f"/proc/{pid}")
        return cpu, delay

    def memory(self) -> int:
        """Returns bytes; those that several processes share are divided among them on Linux."""
        if not self._is_remote:
            return 0
        own = _proportional_memory("self") or memory_of_this_process()
        return own + sum(_proportional_memory(pid) for pid, _ in self._started())

    def _started(self) -> list[tuple[int, list[str]]]:
        return [found for found in _descendants() if found[0] not in self._before]


def _waits() -> int | None:
    """Returns how often this thread has given up its processor to wait; ``None`` if unknown."""
    usage_of = getattr(resource, "RUSAGE_THREAD", None)
    return None if usage_of is None else resource.getrusage(usage_of).ru_nvcsw


def _delay(process: str) -> float:
    """Returns the seconds for which a thread could run and another one did; 0 if unknown."""
    try:
        return int(Path(process, "schedstat").read_text("ascii").split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):  # the system does not count it, or the process ended
        return 0.0


def _descendants() -> Iterator[tuple[int, list[str]]]:
    """Yields the processes that this one has started, and those that they have started.

    Each is its number and the fields of ``/proc/<pid>/stat`` after the name; none where there is no
    such file.
    """
    if sys.platform != "linux":
        return
    children: dict[int, list[tuple[int, list[str]]]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            children.setdefault(int(fields[_PARENT]), []).append((int(process.name), fields))
    ahead = children.get(os.getpid(), [])
    while ahead:
        process_and_fields = ahead.pop()
        yield process_and_fields
        ahead += children.get(process_and_fields[0], [])


def _proportional_memory(pid: int | str) -> int:
    """Returns the proportional set size of a process in bytes; 0 if it is unknown."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
