"""The episodes in a rollout."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import cartwheel.returns as estimators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


class Episode(NamedTuple):
    """One entry of :class:`Episodes`.

    Attributes:
        env_index: The environment. Its column is where :attr:`Rollout.env_index` has it.
        start: The episode's first row in the rollout.
        stop: The row after its last row.
        terminated: Whether it was terminated.
        truncated: Whether it was truncated.
        episode_return: The sum of its rewards, including earlier rollouts.
        length: The number of its steps, including earlier rollouts.
    """

    env_index: int
    start: int
    stop: int
    terminated: bool
    truncated: bool
    episode_return: float
    length: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Episodes:
    """The episodes of a rollout, or their parts in it; arrays ``[E]``.

    Episodes that end in the rollout come first, in the order of their ends. Episodes without an end
    follow: the rollout ended earlier, or their environment failed.

    Attributes:
        env_index: The environment of each episode.
        starts: Its first row in the rollout.
        stops: The row after its last row.
        terminated: Whether it was terminated.
        truncated: Whether it was truncated. Without either flag, it goes on after the rollout, or
            its environment failed (``on_error="restart"``).
        returns: The sum of its rewards, including earlier rollouts.
        lengths: The number of its steps, including earlier rollouts: more than ``stops - starts``
            if it began there.
    """

    env_index: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.starts)

    def __repr__(self) -> str:
        """The number of episodes, and how many of them ended."""
        ended = np.count_nonzero(self.terminated | self.truncated)
        return f"Episodes({len(self)} episodes, {ended} of them complete)"

    def __iter__(self) -> Iterator[Episode]:
        """Iterates over the episodes."""
        columns = (getattr(self, field.name).tolist() for field in dataclasses.fields(self))
        return (Episode(*row) for row in zip(*columns, strict=True))

    @classmethod
    def of(cls, rollout: Record, *, complete_only: bool = False) -> Episodes:
        """Finds the episodes of a rollout; with ``complete_only``, only those that end in it."""
        steps, rows, stops = runs(rollout, complete_only=complete_only)
        carry = rollout.carry
        goes_on = (steps == 0) & ~rollout.is_first[0, rows]
        sums = estimators.discounted_returns(
            rollout.rewards, rollout.terminated, rollout.truncated, valid=rollout.valid, gamma=1.0
        )
        return cls(
            env_index=rollout.env_index[rows],
            starts=steps,
            stops=stops,
            terminated=rollout.terminated[stops - 1, rows],
            truncated=rollout.truncated[stops - 1, rows],
            returns=sums[steps, rows] + np.where(goes_on, carry.returns[rows], 0.0),
            lengths=stops - steps + np.where(goes_on, carry.lengths[rows], 0),
        )


def runs(
    rollout: Record, *, complete_only: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns ``starts``, columns and ``stops``, in the order of :class:`Episodes`."""
    valid = rollout.valid
    over = rollout.terminated | rollout.truncated
    starts, ends = rollout.is_first[:-1].copy(), over.copy()
    starts[0] = ends[-1] = True  # the rollout cuts episodes at its first and last step
    ends[:-1] |= ~valid[1:]  # a failed step is not recorded, so its episode ends before it
    begins, begin_rows = np.divmod(np.flatnonzero(starts & valid), valid.shape[1])
    lasts, rows = np.divmod(np.flatnonzero(ends & valid), valid.shape[1])
    # Environment by environment, every start is followed by its end.
    firsts = np.empty_like(lasts)
    firsts[_by_row(rows)] = begins[_by_row(begin_rows)]
    has_end = over[lasts, rows]
    without = np.flatnonzero(~has_end)[: 0 if complete_only else None]
    order = np.concatenate([np.flatnonzero(has_end), without])
    return firsts[order], rows[order], lasts[order] + 1


def _by_row(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the order by environment, and in time within each."""
    # NumPy sorts numbers of 16 bits in linear time.
    few = rows.max(initial=0) < 2**16
    return np.argsort(rows.astype(np.uint16) if few else rows, kind="stable")


def numbers(rollout: Record) -> NDArray[np.int64]:
    """Returns the index of each row's episode in :class:`Episodes`, ``[T, N]``; -1 for none."""
    steps, rows, _ = runs(rollout)
    marks = np.full(rollout.valid.shape, -1, np.int64)
    marks[steps, rows] = np.arange(len(steps))
    # Find each environment's last mark so far. The steps of marks grow with time; the marks do not.
    place = np.where(marks >= 0, np.arange(len(marks))[:, None], 0)
    np.maximum.accumulate(place, axis=0, out=place)
    found: NDArray[np.int64] = np.take_along_axis(marks, place, axis=0)
    return np.where(rollout.valid, found, -1)
