"""The order ``"groups"``: fixed groups of rows in turn, the same batches whatever the timing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.rollouts.collecting.pipeline import RESETTING, STEPPING, Pipeline
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Groups(Pipeline):
    """Each group steps as a whole, while the policy works for another.

    Group ``g`` has the rows ``g``, ``g + groups``, …, so that every worker has rows of each group.
    What decides the batches of the policy, and when a rollout is complete, is the turn alone. So
    rollouts have the same bits for any executor, any number of workers and any timing.
    """

    _recv_order = "sent"

    def __init__(self, *where: Any, groups: int, **bounds: Any) -> None:
        """As for the pipeline."""
        super().__init__(*where, **bounds)
        self._groups = [np.arange(group, self._num_rows, groups) for group in range(groups)]
        self._turn = 0

    def begin(self, carry: Any, shown: Any) -> None:
        """Continues at the observations ``shown``, after the step of ``carry``."""
        super().begin(carry, shown)
        self._turn = 0

    def _advance(self) -> None:
        rows = self._groups[self._turn]
        while flying := int(np.count_nonzero(self._is_flying(rows))):
            self._receive(flying, None)
        self._settle(rows)
        if self._is_complete():
            return
        if self._permitted(rows[:1])[0]:  # all rows of a group are at the same step
            self._play(rows)
        self._turn = (self._turn + 1) % len(self._groups)

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
            padded = self._no_actions(len(rows))
            nested.assign(padded, asked, actions)
            actions, extras = (
                padded,
                {name: _padded(extra, asked, len(rows)) for name, extra in extras.items()},
            )
        self._send(rows, actions, extras, version)


def _padded(extra: NDArray[Any], places: NDArray[np.intp], count: int) -> NDArray[Any]:
    """Returns zeros with ``extra`` at ``places``."""
    padded = np.zeros((count, *extra.shape[1:]), extra.dtype)
    padded[places] = extra
    return padded
