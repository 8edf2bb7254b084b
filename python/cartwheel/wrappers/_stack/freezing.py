"""Statistics of the training that stay as they are while an evaluation plays."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

from cartwheel._internal.process import uninterrupted
from cartwheel.vector.pool_owner import nothing_in_flight
from cartwheel.wrappers.batch import chain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

#: The queues of Gymnasium's RecordEpisodeStatistics.
_QUEUES = ("return_queue", "length_queue", "time_queue")


class Freezes:
    """A wrapper whose statistics of the training can be kept as they are."""

    #: The contexts of :func:`frozen` that are open.
    _freezes = 0

    @property
    def is_frozen(self) -> bool:
        """Whether statistics of the training stay as they are now, see :meth:`frozen`."""
        return self._freezes > 0

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Self]:
        """Keeps the statistics of all wrappers as they are, for an evaluation of your own.

        Within the context the moments of normalizers do not change, whatever
        ``update_running_mean`` is, nor do queues, counts, ``finished()`` and ``mean()``. Infos
        report episodes as always. Contexts can be nested. :func:`~cartwheel.evaluate` opens one.

        Episodes continue after the context where they are: call ``reset`` before the training goes
        on. Statistics of Gymnasium's wrappers around this one are not kept; ``evaluate`` does that.

        Example:
            >>> import cartwheel
            >>> from cartwheel.wrappers import NormalizeObservation
            >>> envs = NormalizeObservation(cartwheel.NativeVectorEnv("CartPole-v1", 2))
            >>> with envs.frozen() as frozen_envs:
            ...     observations, infos = frozen_envs.reset(seed=1)
            >>> round(envs.obs_rms.count)
            0
            >>> envs.close()

        Yields:
            This vector environment.

        Raises:
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight, at the
                beginning or at the end.
        """
        with nothing_in_flight(self, "frozen"), frozen(self):
            yield self

    def _set_frozen(self, *, is_frozen: bool) -> None:
        """Called before the first context begins, and before the last one ends."""


@contextlib.contextmanager
def frozen(envs: Any) -> Iterator[None]:
    """Freezes the moments, queues and counts of every wrapper of vector environments.

    Wrappers of single environments, within workers, are not among them.
    """
    stack = contextlib.ExitStack()
    try:
        with uninterrupted():  # half of the wrappers would stay frozen, or count on
            for inner in chain(envs):
                if isinstance(inner, Freezes):
                    stack.enter_context(_held(inner))
                elif isinstance(inner, NormalizeObservation | NormalizeReward):
                    stack.enter_context(_without_updates(inner))
                elif isinstance(inner, RecordEpisodeStatistics):
                    stack.enter_context(_with_its_queues(inner))
        yield
    finally:
        with uninterrupted():
            stack.close()


@contextlib.contextmanager
def _held(wrapper: Freezes) -> Iterator[None]:
    if not wrapper.is_frozen:
        wrapper._set_frozen(is_frozen=True)
    wrapper._freezes += 1
    try:
        yield
    finally:
        if wrapper._freezes == 1:
            wrapper._set_frozen(is_frozen=False)
        wrapper._freezes -= 1


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
