"""Clips rewards."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import InvalidBound

from cartwheel.wrappers.transform_reward import TransformReward

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrapping.batch import Batch


class ClipReward(TransformReward):
    """Clips the rewards of transitions; rows that are no transition keep the reward 0.

    Args:
        envs: A vector environment.
        min_reward: The least reward; ``None`` for no limit.
        max_reward: The greatest reward; ``None`` for no limit.

    Raises:
        gymnasium.error.InvalidBound: There is no limit, or ``min_reward`` is above ``max_reward``.
        TypeError: A limit is no number, or NaN.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        min_reward: float | None = None,
        max_reward: float | None = None,
    ) -> None:
        """Checks the limits."""
        low, high = _limit("min_reward", min_reward), _limit("max_reward", max_reward)
        if low is None and high is None:
            raise InvalidBound("give `min_reward`, `max_reward` or both: both are None.")
        if low is not None and high is not None and not low <= high:
            raise InvalidBound(
                f"`min_reward` must not be above `max_reward`, got {min_reward} and {max_reward}."
            )
        self._keeps_zero = not (low is not None and low > 0) and not (high is not None and high < 0)
        # Not a method of this wrapper, which would keep itself until a garbage collection.
        super().__init__(envs, functools.partial(_clipped, low, high))

    def _transform(self, batch: Batch) -> None:
        if batch.rewards is None:
            return
        if self._keeps_zero:  # then rows that are no transition need no mask
            batch.rewards = self.func(batch.rewards)
        else:
            super()._transform(batch)


def _clipped(low: Any, high: Any, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    clipped: NDArray[np.float64] = rewards.clip(low, high)
    return clipped


def _limit(name: str, limit: Any) -> NDArray[np.float64] | None:
    if limit is None:
        return None
    array = np.asarray(limit)
    if array.size != 1 or array.dtype.kind not in "fiu" or np.isnan(array).any():
        raise TypeError(f"`{name}` must be a number or None, got {limit!r}.")
    # An array, because NumPy takes three times as long with limits that are Python's numbers.
    return np.array(array.item(), np.float64)
