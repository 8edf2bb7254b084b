"""The arrays of a rollout slab: the batches of some steps in a row, with a time axis."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ObsType = TypeVar("ObsType")


@dataclasses.dataclass(frozen=True)
class RolloutArrays(Generic[ObsType]):
    """The results of the steps after :meth:`PoolVectorEnv.rollout`.

    The arrays are filled in place, step by step; entries of steps that have not been taken yet have
    no meaning; in a child that is forked meanwhile they never have one. The arrays are contiguous,
    writable and the caller's alone, and keep their values for as long as any of them is referenced.

    Attributes:
        observations: As the space has them, every array of shape ``(num_steps + 1, num_envs,
            *shape)``: entry ``t`` is what the policy sees before step ``t``, entry ``num_steps``
            what the last step returned.
        rewards: ``float64``, shape ``(num_steps, num_envs)``.
        terminations: ``bool``, shape ``(num_steps, num_envs)``.
        truncations: ``bool``, shape ``(num_steps, num_envs)``.
    """

    observations: ObsType
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]

    @property
    def num_steps(self) -> int:
        """Steps of the rollout."""
        return len(self.rewards)
