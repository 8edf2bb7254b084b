"""Wrappers that transform rewards: by functions and by clipping."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import InvalidBound

from cartwheel._internal.rewards import (
    check_reward_space,
    check_rewards_are_numbers,
    reward_shape_of,
)
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Box
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation
    from cartwheel.wrappers.batch import Batch


_FLOAT64 = np.dtype(np.float64)


class TransformReward(VectorWrapper):
    """Applies a function to the rewards of transitions.

    Rows that are not transitions keep the reward 0: autoreset steps, rows that rest, and rows whose
    environment failed.

    Rewards of several objectives, of environments that have a ``reward_space`` of shape ``(k,)``,
    become numbers: ``TransformReward(envs, lambda rewards: rewards @ weights)``. With a
    ``reward_space`` of its own, the wrapper returns arrays.

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
        env: A vector environment.
        func: Called with rewards, ``float64`` ``[K]`` or ``[K, k]``, of **any number of
            transitions**, which it does not write into; returns as many numbers, or as many rows of
            numbers. It is called once with two rewards of zeros when the wrapper is made, and not
            at all where a batch has no transition.
        reward_space: The space of the rewards that ``func`` returns, a ``Box`` of shape ``(k,)``,
            if they are arrays; ``None`` for numbers.

    Raises:
        TypeError: ``func`` cannot be called, or returns no numbers.
        ValueError: ``func`` returns another number of rewards, or ``reward_space`` is another one.
    """

    #: The space of the rewards that the wrapper returns; ``None`` for numbers.
    reward_space: Box | None = None

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        func: Callable[[NDArray[np.float64]], Any],
        reward_space: Box | None = None,
    ) -> None:
        super().__init__(env)
        if not callable(func):
            raise TypeError(f"`func` must be a function of rewards, got {type(func)}.")
        check_reward_space(reward_space)
        self.func = func
        self.reward_space = reward_space
        self._shape = () if reward_space is None else reward_space.shape
        with np.errstate(all="ignore"):
            self._apply(np.zeros((2, *reward_shape_of(env))))

    def _apply(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._checked(self.func(rewards), len(rewards))

    def _checked(self, returned: Any, count: int) -> NDArray[np.float64]:
        """Returns what the function returned for ``count`` rewards, as an array of rewards."""
        result = np.asarray(returned)
        shape = (count, *self._shape)
        if result.dtype is _FLOAT64 and result.shape == shape:
            return result
        if result.dtype.kind not in "fiub":
            raise TypeError(
                f"`func` must return rewards as numbers, got {result.dtype} for {count} rewards."
            )
        if result.shape != shape:
            advice = ""
            if self.reward_space is None and result.ndim == 2:
                advice = " Give `reward_space` if the new rewards are arrays."
            raise ValueError(
                f"`func` must return one reward for each of the {count} transitions, as an "
                f"array {shape}; got {result.shape}.{advice}"
            )
        return result.astype(np.float64, copy=False)

    def _operation(self) -> Operation:
        has_numbers = self._shape == reward_shape_of(self.env) == ()
        return ("reward", (self.func,)) if has_numbers else ("transform", ())

    def transform(self, batch: Batch) -> None:
        """Applies the function to the rewards of transitions."""
        if batch.rewards is None:
            return
        if not np.count_nonzero(batch.kinds):  # all are transitions
            batch.rewards = self._apply(batch.rewards)
            return
        steps = is_transition(batch.kinds)
        rewards = np.zeros((len(steps), *self._shape))
        if np.count_nonzero(steps):
            rewards[steps] = self._apply(batch.rewards[steps])
        batch.rewards = rewards


def is_transition(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which places of a batch are transitions, complete episodes or not."""
    # One comparison: the other kinds lie between these two, and 0 - 1 is 255 in `uint8`.
    assert (TRANSITION, RESET, SHOWN, FAILED, INCOMPLETE) == (0, 1, 2, 3, 4)
    return (kinds - _ONE) >= FAILED


_ONE = np.uint8(1)


class ClipReward(TransformReward):
    """Clips the rewards of transitions; rows that are not transitions keep the reward 0.

    Args:
        env: A vector environment.
        min_reward: The smallest reward; ``None`` for no limit.
        max_reward: The largest reward; ``None`` for no limit.

    Raises:
        gymnasium.error.InvalidBound: There is no limit, or ``min_reward`` is above ``max_reward``.
        TypeError: A limit is not a number, or NaN.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        min_reward: float | None = None,
        max_reward: float | None = None,
    ) -> None:
        check_rewards_are_numbers(env, "ClipReward")
        low, high = _limit("min_reward", min_reward), _limit("max_reward", max_reward)
        if low is None and high is None:
            raise InvalidBound("give `min_reward`, `max_reward` or both: both are None.")
        if low is not None and high is not None and not low <= high:
            raise InvalidBound(
                f"`min_reward` must not be above `max_reward`, got {min_reward} and {max_reward}."
            )
        self._keeps_zero = not (low is not None and low > 0) and not (high is not None and high < 0)
        self._limits = (
            -np.inf if low is None else low.item(),
            np.inf if high is None else high.item(),
        )
        # Not a method of this wrapper, which would keep itself until a garbage collection.
        super().__init__(env, functools.partial(_clipped, low, high))
        self._clips = self.func

    def _operation(self) -> Operation:
        if self._keeps_zero and self.func is self._clips:
            return "clip", self._limits
        return super()._operation()

    def transform(self, batch: Batch) -> None:
        """Clips the rewards of transitions."""
        if batch.rewards is None:
            return
        if self._keeps_zero:  # then rows that are not transitions need no mask
            batch.rewards = self.func(batch.rewards)
        else:
            super().transform(batch)


def _clipped(low: Any, high: Any, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    return rewards.clip(low, high)


def _limit(name: str, limit: Any) -> NDArray[np.float64] | None:
    if limit is None:
        return None
    array = np.asarray(limit)
    if array.size != 1 or array.dtype.kind not in "fiu" or np.isnan(array).any():
        raise TypeError(f"`{name}` must be a number or None, got {limit!r}.")
    # An array, because NumPy takes three times as long with limits that are Python's numbers.
    return np.array(array.item(), np.float64)
