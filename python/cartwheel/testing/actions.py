"""Actions that depend on the seed of a row and on the number of its steps, and on nothing else."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from cartwheel.spaces import nested

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: Rows whose seeds differ by a multiple of this number get the same actions.
STREAMS = 8


class Actions:
    """Samples of an action space, in a few streams."""

    def __init__(self, space: Space[Any]) -> None:
        """Takes the action space of one environment."""
        self._space = copy.deepcopy(space)
        self._made = 0
        self._table: Any = None

    def batch(self, seeds: NDArray[np.int64], turns: NDArray[np.int64]) -> Any:
        """The actions of rows with these seeds in their turns; a turn is a number of steps."""
        last = int(turns.max(initial=0))
        if last >= self._made:
            self._make(2 * last + 64)
        return nested.take(self._space, self._table, seeds % STREAMS * self._made + turns)

    def _make(self, count: int) -> None:
        samples = []
        for stream in range(STREAMS):
            self._space.seed(stream)
            samples += [self._space.sample() for _ in range(count)]
        self._table = nested.stack(self._space, samples)
        self._made = count
