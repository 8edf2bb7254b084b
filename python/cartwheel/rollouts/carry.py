"""The state that one rollout passes on to the next."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Carry:
    """The results of the last step before a rollout, arrays ``[N]``; zeros after a reset.

    Attributes:
        rewards: Rewards of the step.
        terminated: Flags of the step.
        truncated: Flags of the step.
        is_first: Whether the observation after the step begins an episode.
        returns: The sum of the rewards of the step's episode, up to and with the step.
        lengths: The number of steps of this episode, up to and with the step, ``int64``.
    """

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which episodes ended in the step, ``[N]``."""
        return self.terminated | self.truncated

    @classmethod
    def after_reset(cls, num_envs: int) -> Carry:
        """Returns the state after a reset of every environment."""
        zeros, no_rows = np.zeros(num_envs), np.zeros(num_envs, np.bool_)
        return cls(
            rewards=zeros,
            terminated=no_rows,
            truncated=no_rows,
            is_first=~no_rows,
            returns=zeros,
            lengths=np.zeros(num_envs, np.int64),
        )

    def of(self, rows: NDArray[np.int64]) -> Carry:
        """Returns the state of some rows."""
        return Carry(**{name: part[rows] for name, part in vars(self).items()})

    def replaced(self, rows: NDArray[np.int64], other: Carry) -> Carry:
        """Returns the state in which some rows have the state of ``other``."""
        parts = {name: part.copy() for name, part in vars(self).items()}
        for name, part in vars(other).items():
            parts[name][rows] = part
        return Carry(**parts)
