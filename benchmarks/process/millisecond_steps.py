"""A millisecond of computation in each step: how much of the cores the workers keep busy."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.harness.claim import Claim, check
from benchmarks.harness.workloads import compute, rounds_of
from cartwheel.bench.contenders import CEILING, cartwheel_with


class Busy(gym.Env[Any, Any]):
    """Computes at every step."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, rounds: int) -> None:
        """Computes ``rounds`` rounds in each step."""
        self.rounds = rounds
        self.frame = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the only observation."""
        super().reset(seed=seed, options=options)
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - Gymnasium's signature
        """Computes."""
        compute(self.rounds)
        return self.frame, 1.0, False, False, {}


if __name__ == "__main__":
    check(
        "1 ms of computation in each step",
        functools.partial(Busy, rounds_of(1e-3)),
        {16: [Claim(cartwheel_with("process"), CEILING, 0.95)]},
    )
