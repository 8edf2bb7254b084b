"""Runners of what is not a vector environment: a repeated call, the steps of other packages."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cartwheel.bench.runner import VectorRunner

if TYPE_CHECKING:
    from collections.abc import Callable


class Repeated:
    """Times one call, as many times as the last run says fit into the seconds."""

    note = ""

    def __init__(
        self, call: Callable[[], Any], steps: int, close: Callable[[], Any] = lambda: None
    ) -> None:
        """``call`` makes this number of ``steps``; ``close`` ends what it needs."""
        self._call, self._steps, self.close = call, steps, close
        self._call_s = float("inf")  # in the last run

    def run(self, seconds: float) -> float:
        """Calls for about ``seconds``, at least once; returns steps per second."""
        turns, call = max(1, round(seconds / self._call_s)), self._call
        start = time.perf_counter()
        for _ in range(turns):
            call()
        self._call_s = (time.perf_counter() - start) / turns
        return self._steps / self._call_s


def stepping(
    num_envs: int,
    step: Callable[[Any], Any],
    actions: list[Any],
    close: Callable[[], Any] = lambda: None,
    *,
    kind: type[VectorRunner] = VectorRunner,
) -> VectorRunner:
    """A runner of a function that steps so many environments with a batch of actions."""
    envs: Any = SimpleNamespace(num_envs=num_envs, step=step, close=close)
    return kind(envs, actions)
