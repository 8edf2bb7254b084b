"""Native CartPole-v1 beside Gymnasium's own vectorised one, which is written in NumPy."""

from __future__ import annotations

import gymnasium as gym

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import cartwheel_native, own_vector_env

NATIVE, NUMPY = cartwheel_native("CartPole-v1"), own_vector_env(gym.spec("CartPole-v1"))
assert NUMPY is not None, "Gymnasium has a vector entry point for CartPole-v1"

if __name__ == "__main__":
    check(
        "native CartPole-v1",
        no_env,
        {num_envs: [Claim(NATIVE, NUMPY, 3)] for num_envs in (1024, 4096)},
    )
