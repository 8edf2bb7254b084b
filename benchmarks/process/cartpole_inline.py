"""CartPole-v1 in the calling thread, beside Gymnasium's SyncVectorEnv."""

from __future__ import annotations

import functools

import gymnasium as gym

from benchmarks.harness.claim import Claim, check
from cartwheel.bench.contenders import SYNC, cartwheel_with

INLINE = cartwheel_with("inline")

if __name__ == "__main__":
    check(
        "CartPole-v1",
        functools.partial(gym.make, "CartPole-v1"),
        {1: [Claim(INLINE, SYNC, 1.15)], 8: [Claim(INLINE, SYNC, 1.15)]},
    )
