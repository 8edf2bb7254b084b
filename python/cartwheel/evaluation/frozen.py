"""Keeps the statistics of wrappers unchanged during an evaluation."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gymnasium.wrappers.vector import (
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)

from cartwheel.wrappers.base import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The queues of Gymnasium's RecordEpisodeStatistics.
_QUEUES = ("return_queue", "length_queue", "time_queue")


@contextlib.contextmanager
def frozen(envs: Any) -> Iterator[None]:
    """Freezes the moments, queues and counts of every wrapper of vector environments.

    Wrappers of single environments, within workers, are not among them.
    """
    with contextlib.ExitStack() as stack:
        inner = envs
        while inner is not None:
            if isinstance(inner, VectorWrapper):
                stack.enter_context(inner._frozen())
            elif isinstance(inner, NormalizeObservation | NormalizeReward):
                stack.enter_context(_without_updates(inner))
            elif isinstance(inner, RecordEpisodeStatistics):
                stack.enter_context(_with_its_queues(inner))
            inner = vars(inner).get("env")
        yield


@contextlib.contextmanager
def _without_updates(normalizer: NormalizeObservation | NormalizeReward) -> Iterator[None]:
    before = normalizer.update_running_mean
    normalizer.update_running_mean = False
    try:
        yield
    finally:
        normalizer.update_running_mean = before


@contextlib.contextmanager
def _with_its_queues(statistics: RecordEpisodeStatistics) -> Iterator[None]:
    count = statistics.episode_count
    kept = {name: list(getattr(statistics, name)) for name in _QUEUES}
    try:
        yield
    finally:
        statistics.episode_count = count
        for name, values in kept.items():
            queue = getattr(statistics, name)
            queue.clear()
            queue.extend(values)
