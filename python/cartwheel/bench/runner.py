"""What a contender is once it is built: something that can be timed again and again."""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import Any, Protocol

from gymnasium.vector import VectorEnv

AnyVectorEnv = VectorEnv[Any, Any, Any]

ACTION_BATCHES = 256
"""Sampled before the clock starts and replayed in turn; the same for every contender."""


class Runner(Protocol):
    """A contender that is built and ready to be timed."""

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``, at least once; returns environment steps per second."""

    def close(self) -> None:
        """Releases what it holds."""


class VectorRunner:
    """Times ``envs.step`` in a loop that holds nothing else."""

    def __init__(self, envs: AnyVectorEnv) -> None:
        """Takes over ``envs``, resets them and samples their actions."""
        self.envs = envs
        envs.action_space.seed(0)
        self._actions = [envs.action_space.sample() for _ in range(ACTION_BATCHES)]
        self._step_s = float("inf")  # what a step of the batch took in the last run
        envs.reset(seed=0)

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
