"""84×84×4 uint8 observations from environments that do nothing: the cost of moving a frame.

``AsyncVectorEnv`` has a process for each environment, so with 256 environments it starts slowly and
needs one or two GB of memory. ``bytes_copied.py`` counts the copies.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.harness.claim import Claim, check
from cartwheel.bench.contenders import ASYNC, cartwheel_with

SHAPE = (84, 84, 4)


class Still(gym.Env[Any, Any]):
    """Returns the same picture at every step."""

    observation_space = gym.spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        """Creates the only picture that it returns."""
        self.frame = np.full(SHAPE, 7, np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the picture."""
        super().reset(seed=seed, options=options)
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - Gymnasium's signature
        """Returns the picture."""
        return self.frame, 1.0, False, False, {}


if __name__ == "__main__":
    check(
        "84×84×4 uint8 observations, step cost near 0",
        Still,
        {num_envs: [Claim(cartwheel_with("process"), ASYNC, 15)] for num_envs in (32, 256)},
    )
