"""The arrays of a rollout slab: the batches of consecutive steps, with a time axis."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ObsType = TypeVar("ObsType")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RolloutArrays(Generic[ObsType]):
    """The results of the steps after :meth:`PoolVectorEnv.rollout`.

    The arrays are filled in place, step by step. Entries of later steps are undefined until then;
    in a child that was forked meanwhile, they stay undefined. The arrays are contiguous and
    writable, and keep their values for as long as any of them is referenced.

    Attributes:
        observations: Nested like the space, each array of shape ``(num_steps + 1, num_envs,
            *shape)``: entry ``t`` is the policy's input for step ``t``, and entry ``num_steps`` is
            the observation that the last step returned.
        rewards: ``float64``, shape ``(num_steps, num_envs)``; with a ``reward_space`` of shape
            ``(k,)``, ``(num_steps, num_envs, k)``.
        terminated: ``bool``, shape ``(num_steps, num_envs)``.
        truncated: ``bool``, shape ``(num_steps, num_envs)``.
    """

    observations: ObsType
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __repr__(self) -> str:
        num_steps, num_envs = self.terminated.shape
        return f"RolloutArrays({num_steps} steps × {num_envs} envs)"

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return len(self.rewards)
