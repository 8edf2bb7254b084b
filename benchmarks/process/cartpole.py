"""CartPole-v1 in worker processes and in the calling thread, against Gymnasium and ceilings.

A ceiling of loops that are never synchronized is above what a `step` of all rows can reach, because
cores drift; loops in lockstep, which spin until each has stepped its share, are its fair limit.
"""

from __future__ import annotations

import functools

import gymnasium as gym

from benchmarks.harness.claim import Claim, check
from cartwheel.bench.ceiling import Ceiling
from cartwheel.bench.contenders import ASYNC, CEILING, SYNC, Contender, cartwheel_with

PROCESS, INLINE = cartwheel_with("process"), cartwheel_with("inline")
LOCKSTEP = Contender("ceiling in lockstep", functools.partial(Ceiling, lockstep=True))

if __name__ == "__main__":
    check(
        "CartPole-v1",
        functools.partial(gym.make, "CartPole-v1"),
        {
            1: [Claim(INLINE, SYNC, 1.15)],
            8: [Claim(PROCESS, ASYNC, 6), Claim(PROCESS, SYNC, 1.2), Claim(INLINE, SYNC, 1.15)],
            32: [
                Claim(PROCESS, ASYNC, 10),
                Claim(PROCESS, SYNC, 1.2),
                Claim(PROCESS, CEILING, 0.8),
                Claim(PROCESS, LOCKSTEP, 0.95),
            ],
            128: [
                Claim(PROCESS, SYNC, 1.2),
                Claim(PROCESS, CEILING, 0.9),
                Claim(PROCESS, LOCKSTEP, 0.95),
            ],
        },
    )
