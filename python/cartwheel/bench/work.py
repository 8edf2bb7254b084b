"""Work for environments that are to take a known time."""

from __future__ import annotations

import time


def compute(rounds: int) -> int:
    """A fixed amount of work: the clock is not asked, so a slower processor takes longer."""
    value = 1
    for _ in range(rounds):
        value = (value * 48271) % 2147483647  # the minimal standard generator
    return value


def rounds_of(seconds: float) -> int:
    """How many rounds :func:`compute` manages in ``seconds`` on this machine, undisturbed."""
    tried, fastest = 20_000, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        compute(tried)
        fastest = min(fastest, time.perf_counter() - start)
    return round(tried * seconds / fastest)
