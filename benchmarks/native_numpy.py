"""Native CartPole-v1 beside Gymnasium's own vectorised one, which is written in NumPy."""

from __future__ import annotations

from cartwheel.bench.claim import Claim, check
from cartwheel.bench.contenders import cartwheel_native, gymnasium_native, no_env

NATIVE, NUMPY = cartwheel_native("CartPole-v1"), gymnasium_native("CartPole-v1")

if __name__ == "__main__":
    check(
        "native CartPole-v1",
        no_env,
        {num_envs: [Claim(NATIVE, NUMPY, 3)] for num_envs in (1024, 4096)},
    )
