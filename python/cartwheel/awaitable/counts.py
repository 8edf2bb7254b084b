"""Counts of awaited rows. The pool takes every message for a reset, so they correct its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Counts:
    """Resets of the rows, and steps whose actions or observations traveled as messages.

    One thread writes. Another one that reads may see the times of a step before its number.

    Attributes:
        resets: Successful resets of each row.
    """

    def __init__(self, rows: int) -> None:
        self.resets = [0] * rows
        self._steps = [0] * rows
        self._seconds = [0.0] * rows
        self._slowest = [0.0] * rows
        #: For each row, the numbers of steps by the exponent of their nanoseconds.
        self._times: list[dict[int, int]] = [{} for _ in range(rows)]

    def count_step(self, row: int, seconds: float) -> None:
        """Counts a step of a row that took so long."""
        exponent = max(0, math.frexp(seconds * 1e9)[1] - 1)
        times = self._times[row]
        times[exponent] = times.get(exponent, 0) + 1
        self._seconds[row] += seconds
        self._slowest[row] = max(self._slowest[row], seconds)
        self._steps[row] += 1

    def added_to(self, stats: dict[str, Any]) -> dict[str, Any]:
        """Returns the counters of the pool with these.

        Args:
            stats: The keywords of :class:`~cartwheel.Stats`.
        """
        step_times = np.array(stats["step_times"])
        for row, times in enumerate(self._times):
            for exponent, steps in list(times.items()):
                step_times[row, min(exponent, step_times.shape[1] - 1)] += steps
        return {
            **stats,
            "steps": stats["steps"] + np.array(self._steps),
            "resets": np.array(self.resets),
            "step_seconds": stats["step_seconds"] + np.array(self._seconds),
            "timed_seconds": stats["timed_seconds"] + np.array(self._seconds),
            "slowest_step": np.maximum(stats["slowest_step"], self._slowest),
            "step_times": step_times,
            # The first process of a row takes the place of none.
            "restarts": np.maximum(stats["restarts"] - 1, 0),
        }
