"""Where each environment is in its episode, by whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: All environments, as an index.
EVERY = slice(None)


class Episodes:
    """Counts steps and knows which step begins an episode.

    The vector environment below tells neither; both follow from what is sent and received.

    Attributes:
        elapsed: ``int32`` of shape ``(num_envs,)``: steps of the running episode.
        fresh: ``bool`` of shape ``(num_envs,)``: environments whose episode only a reset can begin.
            They were never reset, or what they returned last was lost to an exception.
        outstanding: ``bool`` of shape ``(num_envs,)``: sent and not received.
    """

    def __init__(self, num_envs: int, autoreset_mode: AutoresetMode) -> None:
        """Begins with environments that were never reset."""
        self.elapsed = np.zeros(num_envs, np.int32)
        self.fresh = np.ones(num_envs, np.bool_)
        self.outstanding = np.zeros(num_envs, np.bool_)
        #: The next result is that of a reset.
        self._begins = np.zeros(num_envs, np.bool_)
        self._mode = autoreset_mode
        #: Whether any is fresh; false for all of a usual program's steps.
        self.any_fresh = True
        #: Whether all were sent to at once: they come back at once, in order.
        self._every = False

    def step_sent(self, ids: NDArray[Any] | slice) -> None:
        """Environments were sent actions."""
        self.outstanding[ids] = True
        self._every = isinstance(ids, slice)

    def reset_sent(self, ids: NDArray[Any]) -> None:
        """Environments were sent resets."""
        self.outstanding[ids] = True
        self._every = False
        self.reset_done(ids)

    def reset_done(self, ids: NDArray[Any]) -> None:
        """Environments begin an episode, whatever they were doing."""
        self._begins[ids] = True
        self.fresh[ids] = False
        self.any_fresh = bool(self.fresh.any())

    def received(
        self,
        ids: NDArray[Any],
        terminations: NDArray[np.bool_],
        truncations: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """Takes a received batch into account.

        Returns:
            Steps of the episode to which reward and flags of each row belong; 0 where the row is
            the result of a reset.
        """
        # A slice makes views where an array of all of them would make copies.
        rows: NDArray[Any] | slice = EVERY if self._every else ids
        self._every = False
        elapsed: NDArray[np.int32] = (self.elapsed[rows] + np.int32(1)) * ~self._begins[rows]
        over = terminations | truncations
        self._begins[rows] = over if self._mode is AutoresetMode.NEXT_STEP else False
        self.elapsed[rows] = elapsed * ~over if self._mode is AutoresetMode.SAME_STEP else elapsed
        self.outstanding[rows] = False
        return elapsed

    def only_outstanding(self, in_flight: list[int]) -> None:
        """Notes that no others than ``in_flight`` are outstanding: their results will not come."""
        gone = self.outstanding.copy()
        gone[in_flight] = False
        self.lost(gone.nonzero()[0])

    def lost(self, ids: NDArray[Any]) -> None:
        """Notes that the results of environments will not come."""
        self._every = False
        self.outstanding[ids] = False
        self.fresh[ids] = True
        self.any_fresh = bool(self.fresh.any())
