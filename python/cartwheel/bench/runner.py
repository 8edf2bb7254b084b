"""Runners: contenders that are built, and can be timed any number of times."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium.vector import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Mapping

    import gymnasium as gym

AnyVectorEnv = VectorEnv[Any, Any, Any]

ACTION_BATCHES = 256
"""Batches of actions, sampled before the clock starts and used in turn by every contender."""
TRIALS, TRIAL_S = 3, 0.1
"""Rounds, and seconds of each, in which the settings of one contender are compared."""


def sample_actions(space: gym.Space[Any]) -> list[Any]:
    """Samples the batches of actions of a run; ``space`` is that of a batch."""
    space.seed(0)
    return [space.sample() for _ in range(ACTION_BATCHES)]


class Runner(Protocol):
    """A contender that is built and ready to be timed.

    Attributes:
        note: A remark for the table, such as a choice that it made; mostly empty.
    """

    note: str

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``, at least once; returns environment steps per second."""

    def close(self) -> None:
        """Releases its environments."""


def fastest_of(runners: Mapping[int, Runner]) -> int:
    """Returns the key of the runner that is fastest here and now, in alternating rounds."""
    if len(runners) == 1:
        return next(iter(runners))
    for runner in runners.values():
        runner.run(0)  # one step, to know what a step costs
    rates: dict[int, list[float]] = {key: [] for key in runners}
    for _ in range(TRIALS):
        for key, runner in runners.items():
            rates[key].append(runner.run(TRIAL_S))
    return max(runners, key=lambda key: statistics.median(rates[key]))


class VectorRunner:
    """Times ``envs.step`` in a loop without any other work."""

    def __init__(self, envs: AnyVectorEnv, actions: list[Any]) -> None:
        """Takes over ``envs``, which have been reset, to step them with ``actions`` in turn."""
        self.envs = envs
        self.note = ""
        self._actions = actions
        self._step_s = float("inf")  # seconds of a step of the batch in the last run

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``, at least once; returns environment steps per second.

        The number of steps is fixed beforehand, from the last run, so that the loop reads no clock.
        """
        turns = max(1, round(seconds / self._step_s))
        step = self.envs.step
        start = time.perf_counter()
        for actions in itertools.islice(itertools.cycle(self._actions), turns):
            step(actions)
        elapsed = time.perf_counter() - start
        self._step_s = elapsed / turns
        return turns * self.envs.num_envs / elapsed

    def close(self) -> None:
        """Closes the environments."""
        with contextlib.suppress(EOFError, ConnectionError):  # Ctrl-C has ended its workers too
            self.envs.close()


class SendRecvRunner:
    """Times a pool with EnvPool's interface that returns rows in the order of completion."""

    def __init__(self, pool: Any, actions: list[Any]) -> None:
        """Takes over ``pool``, whose environments are being reset; ``actions`` are for a batch."""
        self.pool = pool
        self.note = ""
        self._actions = actions
        self._step_s = float("inf")  # seconds of a batch in the last run

    def run(self, seconds: float) -> float:
        """As :meth:`VectorRunner.run`; a step of a batch counts for the rows that it has."""
        turns = max(1, round(seconds / self._step_s))
        receive, send = self.pool.recv, self.pool.send
        start = time.perf_counter()
        for actions in itertools.islice(itertools.cycle(self._actions), turns):
            send(actions, receive()[4]["env_id"])
        elapsed = time.perf_counter() - start
        self._step_s = elapsed / turns
        return turns * len(self._actions[0]) / elapsed

    def close(self) -> None:
        """Closes the environments."""
        self.pool.close()
