"""Where each environment is in its episode, by whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    def step_sent(self, ids: NDArray[Any] | slice) -> None:
        """Environments were sent actions."""
        self.outstanding[ids] = True

    def reset_sent(self, ids: NDArray[Any]) -> None:
        """Environments were sent resets."""
        self.outstanding[ids] = True
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
        elapsed: NDArray[np.int32] = np.where(
            self._begins[ids], np.int32(0), self.elapsed[ids] + np.int32(1)
        )
        over = terminations | truncations
        if self._mode == AutoresetMode.SAME_STEP:
            self._begins[ids] = False
            self.elapsed[ids] = np.where(over, np.int32(0), elapsed)
        else:
            self._begins[ids] = over if self._mode == AutoresetMode.NEXT_STEP else False
            self.elapsed[ids] = elapsed
        self.outstanding[ids] = False
        return elapsed

    def only_outstanding(self, in_flight: list[int]) -> None:
        """Notes that no others than ``in_flight`` are outstanding: their results will not come."""
        gone = self.outstanding.copy()
        gone[in_flight] = False
        self.lost(gone.nonzero()[0])

    def lost(self, ids: NDArray[Any]) -> None:
        """Notes that the results of environments will not come."""
        self.outstanding[ids] = False
        self.fresh[ids] = True
        self.any_fresh = bool(self.fresh.any())
