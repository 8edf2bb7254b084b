"""Ten scalar infos in each step, which Gymnasium gathers in Python, one by one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.harness.claim import Claim, check
from cartwheel.bench.contenders import ASYNC, SYNC, cartwheel_with

KEYS = [f"key_{number}" for number in range(10)]


class Talkative(gym.Env[Any, Any]):
    """Does nothing and returns ten infos."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        """Creates the only observation that it returns."""
        self.frame = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns the frame."""
        super().reset(seed=seed, options=options)
        return self.frame, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002 - Gymnasium's signature
        """Returns the frame and ten floats."""
        return self.frame, 1.0, False, False, dict.fromkeys(KEYS, 0.5)


if __name__ == "__main__":
    check(
        "ten scalar infos, step cost near 0",
        Talkative,
        {
            32: [
                Claim(cartwheel_with("process"), ASYNC, 10),
                Claim(cartwheel_with("inline"), SYNC, 1.5),
            ]
        },
    )
