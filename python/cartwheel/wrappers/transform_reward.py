"""Applies a function to rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.wrapping.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrapping.batch import Batch


class TransformReward(VectorWrapper):
    """Applies a function to the rewards of transitions.

    Rows that are no transition keep the reward 0: autoreset steps, rows that rest, and rows whose
    environment failed.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import TransformReward
        >>> envs = TransformReward(
        ...     cartwheel.NativeVectorEnv("CartPole-v1", 2), lambda rewards: rewards - 0.5
        ... )
        >>> observations, infos = envs.reset(seed=1)
        >>> envs.step(envs.action_space.sample())[1]
        array([0.5, 0.5])
        >>> envs.close()

    Args:
        envs: A vector environment.
        func: Called with rewards, ``float64`` ``[K]``, of **any number of transitions**, which it
            does not write into; returns as many numbers. It is called once with two zeros when the
            wrapper is made, and not at all where a batch has no transition.

    Raises:
        TypeError: ``func`` cannot be called, or returns no numbers.
        ValueError: ``func`` returns another number of rewards.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        func: Callable[[NDArray[np.float64]], Any],
    ) -> None:
        """Tries the function."""
        super().__init__(envs)
        if not callable(func):
            raise TypeError(f"`func` must be a function of rewards, got {type(func)}.")
        self.func = func
        with np.errstate(all="ignore"):
            self._apply(np.zeros(2))

    def _apply(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        result = np.asarray(self.func(rewards))
        if result.dtype.kind not in "fiub":
            raise TypeError(
                f"`func` must return rewards as numbers, got {result.dtype} for {len(rewards)} "
                "rewards."
            )
        if result.shape != rewards.shape:
            raise ValueError(
                f"`func` must return one reward for each of the {len(rewards)} transitions, as an "
                f"array {rewards.shape}; got {result.shape}."
            )
        return result.astype(np.float64, copy=False)

    def _transform(self, batch: Batch) -> None:
        if batch.rewards is None:
            return
        if not np.count_nonzero(batch.kinds):  # all are transitions
            batch.rewards = self._apply(batch.rewards)
            return
        steps = is_transition(batch.kinds)
        rewards = batch.rewards.copy()
        if np.count_nonzero(steps):
            rewards[steps] = self._apply(rewards[steps])
        batch.rewards = rewards


def is_transition(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which places of a batch are transitions, complete episodes or not."""
    # One comparison: the other kinds lie between these two, and 0 - 1 is 255 in `uint8`.
    assert (TRANSITION, RESET, SHOWN, FAILED, INCOMPLETE) == (0, 1, 2, 3, 4)
    steps: NDArray[np.bool_] = (kinds - _ONE) >= FAILED
    return steps


_ONE = np.uint8(1)
