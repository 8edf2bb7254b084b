"""Steps that compute for a millisecond, that have ten scalar infos, and that show images.

Gymnasium gathers infos in Python, one by one. Images are 84×84×4 ``uint8``, from environments that
do nothing: the cost of moving a frame, whose copies ``bytes_copied.py`` counts. ``AsyncVectorEnv``
has a process for each environment, so with 256 of them it starts slowly and needs one or two GB of
memory.
"""

from __future__ import annotations

import functools

from benchmarks.harness.claim import Claim, check
from benchmarks.harness.workloads import IMAGE, Idle, Timed, rounds_of
from cartwheel.bench.contenders import ASYNC, CEILING, SYNC, cartwheel_with

if __name__ == "__main__":
    process, inline = cartwheel_with("process"), cartwheel_with("inline")
    check(
        "1 ms of computation in each step",
        functools.partial(Timed, 1.0, rounds_a_ms=rounds_of(1e-3)),
        {16: [Claim(process, CEILING, 0.95)]},
    )
    check(
        "ten scalar infos, step cost near 0",
        functools.partial(Idle, infos=10),
        {32: [Claim(process, ASYNC, 10), Claim(inline, SYNC, 1.5)]},
    )
    check(
        "84×84×4 uint8 observations, step cost near 0",
        functools.partial(Idle, IMAGE),
        {num_envs: [Claim(process, ASYNC, 15)] for num_envs in (32, 256)},
    )
