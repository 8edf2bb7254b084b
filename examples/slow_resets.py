"""Environments whose resets take long: in lockstep, in the order ``"free"``, and with spares.

A step takes 1 ms and a reset 50 to 200 ms, as if a simulator loaded a level. In lockstep every row
waits for each reset. In the order ``"free"`` only the row that resets waits, and the policy works
for the others. With ``standby`` not even this row waits: one of the last environments has been
reset ahead of need and goes on in its place. As many environments more as rows of their own hide
the resets too, but then a rollout has more columns. Each environment has a worker of its own,
because a reset holds all rows of its worker.

Run it with ``python examples/slow_resets.py``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import ModeName

ROWS = 8


class Level(gym.Env[Any, Any]):
    """A walk of 30 to 70 steps of 1 ms each; its reset takes 50 to 200 ms."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Loads a level."""
        super().reset(seed=seed, options=options)
        time.sleep(self.np_random.uniform(0.05, 0.2))
        self.left, self.place = int(self.np_random.integers(30, 71)), np.zeros(1)
        return self.place.copy(), {}

    def step(
        self, action: np.int64
    ) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Walks to the left or to the right."""
        time.sleep(0.001)
        self.place += 2 * int(action) - 1 + self.np_random.normal()
        self.left -= 1
        return self.place.copy(), -float(abs(self.place[0])), self.left == 0, False, {}


def policy(observations: NDArray[np.float64]) -> NDArray[np.int64]:
    """Walks to the origin; (rows, 1) to (rows,)."""
    return (observations[:, 0] < 0).astype(np.int64)


#: For each way: its autoreset mode, its environments and further arguments of the collector.
WAYS: dict[str, tuple[ModeName, int, dict[str, Any]]] = {
    "lockstep": ("next_step", ROWS, {}),
    "free": ("next_step", ROWS, {"order": "free", "run_ahead": 1}),
    "free, 16 rows": ("next_step", 2 * ROWS, {"order": "free", "run_ahead": 1}),
    "free, 8 spares": ("disabled", 2 * ROWS, {"order": "free", "run_ahead": 1, "standby": ROWS}),
}


def measure(way: str, steps: int) -> tuple[float, float]:
    """Returns the steps a second of one way, and the part of the time in which it waited."""
    mode, num_envs, arguments = WAYS[way]
    envs = cartwheel.VectorEnv([Level] * num_envs, num_workers=num_envs, autoreset_mode=mode)
    try:
        collector = cartwheel.Collector(envs, policy, num_steps=50, seed=1, **arguments)
        played, start = 0, time.perf_counter()
        while played < steps:
            played += int(collector.collect().valid.sum())
            seconds = time.perf_counter() - start
            print(
                f"\r{way:<16}{played:>7,} of {steps:,} steps, {seconds:4.1f} s", end="", flush=True
            )
        stats = collector.stats()
        collector.close()
    finally:
        envs.close()
    return played / seconds, stats.waiting_share


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Collects in each way, and returns its steps a second."""
    parser = argparse.ArgumentParser(description="Collecting from environments of slow resets.")
    parser.add_argument("--steps", type=int, default=4_000, help="of all rows, in each way")
    steps = parser.parse_args(arguments).steps
    speeds: dict[str, float] = {}
    for way in WAYS:
        speeds[way], waited = measure(way, steps)
        gain = speeds[way] / speeds["lockstep"]
        print(f"\r{way:<16}{speeds[way]:>7,.0f} steps a second, {gain:.1f} × lockstep", end="")
        print(f"; waited {waited:.0%} of the time")
    return speeds


if __name__ == "__main__":
    main()
