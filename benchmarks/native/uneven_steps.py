"""A millisecond ± 50 % of computation in each native step: how well threads share uneven work.

The ceiling is the ideal: independent plain loops, one on each core over its share of the rows. A
batch ends with its last row, so the threads have to take rows from each other to come near the
ceiling.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness.claim import Claim, check, no_env
from cartwheel._cartwheel import plain_loop
from cartwheel.bench.contenders import cartwheel_native, native_ceiling

SPREAD = 0.5


def rounds_of(seconds: float) -> int:
    """Number of rounds of work that ``Null-v0`` does in ``seconds`` on this machine, if idle."""
    tried = 100_000
    fastest = max(
        plain_loop("Null-v0", 1, seconds=0.01, threads=1, options=f'{{"work": {tried}}}')
        for _ in range(20)
    )
    return round(tried * fastest * seconds)


if __name__ == "__main__":
    work: dict[str, Any] = {"work": rounds_of(1e-3), "work_spread": SPREAD}
    native = cartwheel_native("Null-v0", **work)
    ideal = native_ceiling("Null-v0", **work)
    check(
        "1 ms ± 50 % of computation in each native step",
        no_env,
        {num_envs: [Claim(native, ideal, 0.9)] for num_envs in (16, 64)},
    )
