"""A millisecond of computation in each step: how much of the cores the workers keep busy."""

from __future__ import annotations

import functools
import time
from typing import Any

import gymnasium as gym
import numpy as np

from cartwheel.bench.claim import Claim, check
from cartwheel.bench.contenders import CEILING, cartwheel_with


def compute(rounds: int) -> int:
    """A fixed amount of work: the clock is not asked, so a slower processor takes longer."""
    value = 1
    for _ in range(rounds):
        value = (value * 48271) % 2147483647  # the minimal standard generator
    return value


def rounds_of(seconds: float) -> int:
    """How many rounds :func:`compute` manages in ``seconds`` on this machine, undisturbed."""
    tried, fastest = 20_000, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        compute(tried)
        fastest = min(fastest, time.perf_counter() - start)
    return round(tried * seconds / fastest)


class Busy(gym.Env[Any, Any]):
    """Computes at every step."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, rounds: int) -> None:
        """Computes ``rounds`` rounds in each step."""
        self.rounds = rounds
        self.frame = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the one observation there is."""
        super().reset(seed=seed, options=options)
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002
        """Computes."""
        compute(self.rounds)
        return self.frame, 1.0, False, False, {}


if __name__ == "__main__":
    check(
        "1 ms of computation in each step",
        functools.partial(Busy, rounds_of(1e-3)),
        {16: [Claim(cartwheel_with("process"), CEILING, 0.95)]},
    )
