"""Environments and policies that take known times, by computing or by waiting."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

#: The shape of Atari's frames, as trainers stack them.
IMAGE = (84, 84, 4)


class Idle(gym.Env[Any, Any]):
    """An environment that does nothing; all of its observations and infos are the same.

    Attributes:
        frame: The only observation.
    """

    action_space = gym.spaces.Discrete(2)

    def __init__(self, shape: tuple[int, ...] = (4,), infos: int = 0) -> None:
        """Makes the observation, ``uint8`` for an image; a step has this many scalar infos."""
        dtype = np.uint8 if len(shape) > 1 else np.float32
        self.observation_space = gym.spaces.Box(0, 1, shape, dtype)
        self.frame = np.ones(shape, dtype)  # of pages of its own, unlike zeros
        self._keys = [f"key_{number}" for number in range(infos)]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the frame."""
        super().reset(seed=seed, options=options)
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns the frame and the infos."""
        return self.frame, 1.0, False, False, dict.fromkeys(self._keys, 0.5)


class Timed(Idle):
    """An environment whose steps and resets take known times."""

    def __init__(
        self,
        step_ms: float,
        *,
        rounds_a_ms: int = 0,
        sigma: float = 0.0,
        reset_ms: float = 0.0,
        episode: int = 0,
        shape: tuple[int, ...] = (4,),
    ) -> None:
        """Says how long what takes.

        Args:
            step_ms: Milliseconds of a step; their median if steps are uneven.
            rounds_a_ms: Rounds of computing for each millisecond of a step; 0: a step waits.
            sigma: Of the lognormal distribution of steps; 0: all steps take equally long.
            reset_ms: Milliseconds for which a reset waits.
            episode: Mean length of episodes, which last half of it to one and a half; 0: no end.
                The first one may be shorter, so that rows do not end together.
            shape: Of an observation; images are ``uint8``.
        """
        super().__init__(shape)
        self.step_ms, self.rounds_a_ms, self.sigma = step_ms, rounds_a_ms, sigma
        self.reset_ms, self.episode = reset_ms, episode
        self._left, self._shortest = 0, 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Waits, and begins an episode."""
        super().reset(seed=seed, options=options)
        wait(self.reset_ms)
        if self.episode:
            self._left = int(self.np_random.integers(self._shortest, 3 * self.episode // 2 + 1))
            self._shortest = self.episode // 2
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Computes or waits."""
        milliseconds = self.step_ms
        if self.sigma:
            milliseconds *= self.np_random.lognormal(0.0, self.sigma)
        if self.rounds_a_ms:
            compute(round(self.rounds_a_ms * milliseconds))
        else:
            wait(milliseconds)
        self._left -= 1
        return self.frame, 1.0, self._left == 0, False, {}


class TimedPolicy:
    """A policy whose calls take a known time, however many rows they are for."""

    def __init__(self, milliseconds: float, rounds_a_ms: int = 0) -> None:
        """Waits for so long, as for an accelerator, or computes ``rounds_a_ms`` rounds for each."""
        self.milliseconds, self.rounds_a_ms = milliseconds, rounds_a_ms

    def __call__(self, observations: Any) -> Any:
        """Action 0 for each row."""
        if self.rounds_a_ms:
            compute(round(self.rounds_a_ms * self.milliseconds))
        else:
            wait(self.milliseconds)
        return np.zeros(len(observations), np.int64)


def wait(milliseconds: float) -> None:
    """Leaves the processor to others for so long."""
    if milliseconds:
        time.sleep(milliseconds / 1000)


def compute(rounds: int) -> int:
    """A fixed amount of work: the clock is not asked, so a slower processor takes longer."""
    value = 1
    for _ in range(rounds):
        value = (value * 48271) % 2147483647  # the minimal standard generator
    return value


def rounds_of(seconds: float) -> int:
    """Rounds that :func:`compute` manages in ``seconds`` on this machine, undisturbed."""
    tried, fastest = 20_000, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        compute(tried)
        fastest = min(fastest, time.perf_counter() - start)
    return round(tried * seconds / fastest)
