"""The score of a training: returns of episodes, and the time that environments take."""

from __future__ import annotations

import collections
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Episodes whose mean return counts.
EPISODES = 100


class Over(Exception):
    """The task is solved, or the steps or the seconds are used up: ends a trainer's loop."""


class Score:
    """Counts steps, seconds and returns, and ends the training.

    Attributes:
        steps: Steps of all rows together.
        environment_s: Seconds in which environments were made, and the trainer waited for them.
        is_solved: Whether the mean return of 100 episodes has reached the threshold.
        shown_s: Seconds at the line that was shown last: those of the training, once it is over.
    """

    def __init__(self, threshold: float, max_steps: int, max_seconds: float, label: str) -> None:
        """Starts the clock."""
        self.steps, self.environment_s, self.is_solved = 0, 0.0, False
        self.shown_s = float("-inf")
        self._threshold, self._max_steps, self._max_seconds = threshold, max_steps, max_seconds
        self._label = label
        self._returns: collections.deque[float] = collections.deque(maxlen=EPISODES)
        self._running = np.zeros(0)
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._start

    @property
    def mean(self) -> float:
        """Mean return of the last episodes; NaN before the first has ended."""
        return float(np.mean(self._returns)) if self._returns else float("nan")

    @contextlib.contextmanager
    def environments(self) -> Iterator[None]:
        """The time inside is that of environments."""
        start = time.perf_counter()
        yield
        self.environment_s += time.perf_counter() - start

    def add(self, rewards: Any, ended: Any) -> None:
        """Counts a step of all rows.

        In ``NEXT_STEP`` the step that only resets a row is counted too: its reward is 0.

        Raises:
            Over: This was the last step.
        """
        if not len(self._running):
            self._running = np.zeros(len(rewards))
        self._running += rewards
        self.steps += len(rewards)
        if ended.any():
            self._returns.extend(self._running[ended].tolist())
            self._running[ended] = 0
            self.is_solved = len(self._returns) == EPISODES and self.mean >= self._threshold
        seconds = self.seconds
        over = self.is_solved or self.steps >= self._max_steps or seconds >= self._max_seconds
        if over or seconds - self.shown_s >= 1:
            self.shown_s = seconds
            text = f"{self._label}: {self.steps:,} steps, {seconds:.0f} s, mean {self.mean:.2f}"
            print(f"\r{text:<79}", end="", file=sys.stderr, flush=True)
        if over:
            raise Over


class Scored(VectorWrapper):
    """A vector environment whose steps are timed and scored. It has no other way to step."""

    def __init__(self, envs: Any, score: Score) -> None:
        """Wraps ``envs``, of any package."""
        super().__init__(envs)
        self._score = score

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Resets the rows."""
        with self._score.environments():
            return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        """Steps the rows."""
        with self._score.environments():
            result = self.env.step(actions)
        self._score.add(result[1], result[2] | result[3])
        return result
