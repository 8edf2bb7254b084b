"""Rows that went on in results that were lost, until a batch shows where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cartwheel.wrappers.batch import INCOMPLETE, RESET, SHOWN, TRANSITION, Late

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: One observation was lost, which is the present one.
_NEW: Final = 1
#: The present observation is the first one of an episode.
_BEGUN: Final = 2
#: Several observations were lost, or it is not known whether any was.
_SKIPPED: Final = 3
#: More than there are wrappers.
_ALL: Final = np.iinfo(np.intp).max


class Unseen:
    """The rows whose present observation was in no batch.

    Attributes:
        are_there: Whether there are any.
    """

    __slots__ = ("_seen_by", "_what", "are_there")

    def __init__(self, num_envs: int) -> None:
        """Nothing was lost."""
        self._what = np.zeros(num_envs, np.uint8)
        #: How many wrappers, from the innermost on, have seen what was lost.
        self._seen_by = np.zeros(num_envs, np.intp)
        self.are_there = False

    def lose(self, rows: NDArray[np.int64], begun: Any, seen_by: int) -> None:
        """Results were lost.

        Args:
            rows: The rows, all of which have a new observation.
            begun: For which of them it is the first one of an episode.
            seen_by: How many wrappers have seen them.
        """
        before = self._what[rows] > 0
        self._what[rows] = np.where(begun, _BEGUN, np.where(before, _SKIPPED, _NEW))
        earlier = np.where(before, self._seen_by[rows], seen_by)
        self._seen_by[rows] = np.minimum(earlier, seen_by)
        self.are_there = bool(self._what.any())

    def doubt(self, rows: NDArray[np.int64]) -> None:
        """It is not known whether the results that these rows lost were seen, or were there."""
        what = self._what[rows]
        self._what[rows] = np.where(what == _NEW, _SKIPPED, what)

    def show(self, kinds: NDArray[np.uint8]) -> tuple[Late | None, NDArray[np.intp]]:
        """All rows are shown, by a reset of some rows.

        Args:
            kinds: What a batch of all rows is for those who have seen everything.

        Returns:
            What it is for the others, if there are any; and the rows that have begun an episode.
        """
        new = (kinds == SHOWN) & (self._what > 0)
        begun = new & (self._what == _BEGUN)
        late = np.where(begun, RESET, np.where(new, INCOMPLETE, kinds)).astype(np.uint8)
        told = self._late(slice(None), late, new & (self._what == _SKIPPED), new)
        return told, np.flatnonzero(begun)

    def step(self, rows: Any, kinds: NDArray[np.uint8]) -> tuple[Late | None, NDArray[np.bool_]]:
        """Rows of a batch were stepped, or received.

        Args:
            rows: The rows; ``None`` for all.
            kinds: What the batch is for those who have seen everything.

        Returns:
            What it is for the others, if there are any; and the places of which the first
            observation of the episode was never shown.
        """
        at: Any = slice(None) if rows is None else rows
        what = self._what[at]
        stepped = ((kinds == TRANSITION) | (kinds == INCOMPLETE)) & (what > 0)
        frozen = (kinds == SHOWN) & (what > 0)  # the last observation of its episode
        late = np.where(frozen, INCOMPLETE, kinds).astype(np.uint8)
        gaps = stepped | (frozen & (what == _SKIPPED))
        begun = stepped & (what == _BEGUN)
        return self._late(at, late, gaps, stepped | frozen), begun

    def forget(self, rows: Any) -> None:
        """Rows (``None``: all) begin an episode: what was lost before does not matter."""
        self._what[slice(None) if rows is None else rows] = 0
        self.are_there = bool(self._what.any())

    def _late(
        self, at: Any, kinds: NDArray[np.uint8], gaps: NDArray[np.bool_], new: NDArray[np.bool_]
    ) -> Late | None:
        seen_by = np.where(new, self._seen_by[at], _ALL)
        self.forget(at)
        return Late(kinds, gaps, seen_by) if new.any() else None
