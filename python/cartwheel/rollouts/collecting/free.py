"""The order ``"free"``: the policy is asked for whatever rows are done."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.rollouts.collecting.pipeline import READY, Pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Free(Pipeline):
    """No row waits for another, except for its pace.

    Args:
        min_rows: The policy is asked for at least so many rows, if so many can come,
        max_rows: and for at most so many;
        deadline: but for those that are there after so many seconds.
    """

    _recv_order = "done"

    def __init__(
        self, *where: Any, min_rows: int, max_rows: int, deadline: float | None, **bounds: Any
    ) -> None:
        """As for the pipeline."""
        super().__init__(*where, **bounds)
        self._min_rows, self._max_rows, self._deadline = min_rows, max_rows, deadline
        #: When the first row began to wait for the policy.
        self._since: float | None = None

    def _advance(self) -> None:
        rows = self._waiting()
        if not len(rows):
            self._since = None
            if self._flying:
                self._receive(self._min_rows, None)
        elif len(rows) >= self._min_rows or not self._flying or not self._may_wait(len(rows)):
            self._play(rows[: self._max_rows])
            self._since = None

    def _waiting(self) -> NDArray[np.int64]:
        """Rows that wait for the policy; those that only reset are sent at once."""
        rows = np.flatnonzero(self._state == READY)
        rows = rows[self._permitted(rows)]
        resets = self._resets[rows]
        if np.count_nonzero(resets):
            self._pass(rows[resets])
            return rows[~resets]
        if self._fresh is not None and len(self._fresh[0]) == len(rows):
            fresh = self._fresh[0]
            return fresh if self._permitted(fresh).all() else rows  # in the order of their batch
        return rows

    def _may_wait(self, ready: int) -> bool:
        """Receives further rows while the deadline lasts; returns whether it lasts still."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left = None if self._deadline is None else self._deadline - (now - self._since)
        if left is not None and left <= 0:
            return False
        try:
            self._receive(self._min_rows - ready, left)
        except multiprocessing.TimeoutError:
            return False
        return True

    def _play(self, rows: NDArray[np.int64]) -> None:
        """Asks the policy for rows and sends its actions."""
        self._send(rows, *self._ask(rows, self._observations(rows)))
