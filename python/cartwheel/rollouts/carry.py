"""What one rollout hands on to the next: the frame that they have in common."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Carry:
    """What a step left behind, ``[N]`` each; after a reset nothing.

    Attributes:
        rewards: Rewards of that step.
        terminated: Its flags.
        truncated: Its flags.
        is_first: Whether the observation after it begins an episode.
        returns: Sum of the rewards of the episode up to it; of one that it ended, all of them.
        lengths: Steps of the episode up to it, ``int64``.
    """

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whose episode that step ended, ``[N]``."""
        return self.terminated | self.truncated

    @classmethod
    def after_reset(cls, num_envs: int) -> Carry:
        """Every environment shows the first observation of an episode."""
        zeros, no_rows = np.zeros(num_envs), np.zeros(num_envs, np.bool_)
        return cls(
            rewards=zeros,
            terminated=no_rows,
            truncated=no_rows,
            is_first=~no_rows,
            returns=zeros,
            lengths=np.zeros(num_envs, np.int64),
        )
