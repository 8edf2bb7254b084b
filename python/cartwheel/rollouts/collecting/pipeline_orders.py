"""The two orders of a pipeline: free, and in groups.

In the order ``"free"``, the policy is called with the rows that are done. In the order
``"groups"``, fixed groups of rows take turns: the same batches, whatever the timing.
"""

from __future__ import annotations

import collections
import multiprocessing
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel.rollouts.collecting.block import unasked
from cartwheel.rollouts.collecting.pipeline import READY, RESETTING, STEPPING, Pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Free(Pipeline):
    """No row waits for another, except for its pace.

    Args:
        min_rows: The policy is called with at least so many rows, if so many can arrive,
        max_rows: and for at most so many;
        deadline: but for those that are there after so many seconds.
    """

    _recv_order = "done"

    def __init__(
        self, *where: Any, min_rows: int, max_rows: int, deadline: float | None, **bounds: Any
    ) -> None:
        super().__init__(*where, **bounds)
        self._min_rows, self._max_rows, self._deadline = min_rows, max_rows, deadline
        #: When the first row began to wait for the policy.
        self._since: float | None = None

    def _advance(self) -> None:
        rows = self._waiting()
        if not len(rows):
            self._since = None
            if self._flying:  # the deadline begins with the first row
                self._receive(1 if self._deadline is not None else self._min_rows, None)
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
        """Receives further rows while the deadline lasts; returns whether it lasts still.

        Raises:
            WorkerTimeoutError: There is no deadline, and rows took longer than the ``timeout`` of
                the environments; or results are lost.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left = None if self._deadline is None else self._deadline - (now - self._since)
        if left is not None and left <= 0:
            return False
        try:
            self._receive(self._min_rows - ready, left)
        except multiprocessing.TimeoutError as late:
            if left is None or getattr(late, "results_lost", False):
                raise
            return False
        return True

    def _play(self, rows: NDArray[np.int64]) -> None:
        """Calls the policy for rows and sends its actions."""
        self._send(rows, *self._ask(rows, self._observations(rows)))


class Groups(Pipeline):
    """Each group steps as a whole, while the policy works for another.

    Group ``g`` has the rows ``g``, ``g + groups``, …, so that every worker has rows of each group.
    What decides the batches of the policy, and when a rollout is complete, is the turn alone. So
    rollouts have the same bits for any executor, any number of workers and any timing. Rows that
    were sent together are received together, and no others with them, even if they are done: a
    wrapper such as ``NormalizeObservation`` counts batches.
    """

    _recv_order = "sent"

    def __init__(self, *where: Any, groups: int, **bounds: Any) -> None:
        super().__init__(*where, **bounds)
        self._groups = [np.arange(group, self._num_rows, groups) for group in range(groups)]

    def begin(self, carry: Any, shown: Any) -> None:
        """Continues at the observations ``shown``, after the step of ``carry``."""
        self.turn = 0
        #: For each send, the first one first, how many of its rows have not been received.
        self._sends: collections.deque[int] = collections.deque()
        super().begin(carry, shown)  # last, because it counts as begun from then on

    def _note_sent(self, count: int) -> None:
        super()._note_sent(count)
        self._sends.append(count)

    def _note_received(self, count: int) -> None:
        super()._note_received(count)
        left = self._sends.popleft() - count
        if left:  # the rest is in the memory of another batch
            self._sends.appendleft(left)

    def _wanted(self, min_rows: int) -> dict[str, int]:
        del min_rows
        return {"max_rows": self._sends[0]}  # and as many at least, also after a time-out

    def _advance(self) -> None:
        self.turn %= len(self._groups)  # a state that was loaded may be one of more groups
        rows = self._groups[self.turn]
        while self._is_flying(rows).any():
            self._receive(1, None)
        self._settle(rows)
        if self._is_complete():
            return
        if self._permitted(rows[:1])[0]:  # all rows of a group are at the same step
            self._play(rows)
        self.turn = (self.turn + 1) % len(self._groups)

    def _is_flying(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        state = self._state[rows]
        flying: NDArray[np.bool_] = (state == STEPPING) | (state == RESETTING)
        return flying

    def _arrive(self, rows: NDArray[np.int64]) -> None:
        """Complete columns count at the turn of their group."""

    def _play(self, rows: NDArray[np.int64]) -> None:
        """Steps a group; rows that only reset are stepped with it."""
        asked = np.flatnonzero(~self._resets[rows])
        if not len(asked):
            self._pass(rows)
            return
        chosen = rows[asked]
        actions, extras, version = self._ask(chosen, self._observations(chosen))
        if len(asked) < len(rows):
            # Actions keep their dtype, too: floats may be wider than those of the space.
            def padded(whole: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
                whole = whole.astype(part.dtype)
                whole[asked] = part
                return whole

            actions = nested.apply(padded, self._no_actions(len(rows)), actions)
            extras = {
                name: padded(unasked(name, extra[None], (len(rows),)), extra)
                for name, extra in extras.items()
            }
        self._send(rows, actions, extras, version)
