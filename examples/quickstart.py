"""Thirty-two CartPoles in worker processes, with a policy of one line.

Run it with ``python examples/quickstart.py``.
"""

from __future__ import annotations

import argparse
import time

import gymnasium as gym
import numpy as np

import cartwheel


def main() -> None:
    """Steps the environments and prints speed and returns."""
    envs = cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 32)
    observations, _ = envs.reset(seed=7)  # (32, 4) float32
    returns: list[float] = []
    running = np.zeros(envs.num_envs)
    start, steps = time.perf_counter(), 1000
    for _ in range(steps):
        actions = (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)  # (32,)
        observations, rewards, terminations, truncations, _ = envs.step(actions)
        running += rewards  # (32,) float64
        over = terminations | truncations  # (32,) bool
        returns.extend(running[over])
        running[over] = 0.0
    seconds = time.perf_counter() - start
    envs.close()
    print(f"{envs.num_envs} environments, {envs.num_workers} {envs.executor} workers")
    print(f"{steps * envs.num_envs / seconds:,.0f} steps per second")
    print(f"{len(returns)} episodes, mean return {np.mean(returns):.1f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
