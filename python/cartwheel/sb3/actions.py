"""Actions in the form of Stable-Baselines3, as batches of an action space."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.near_misses import shown
from cartwheel.spaces.describe import batch_of_actions, describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space


def batches_of(space: Space[Any], num_envs: int) -> Callable[[Any], Any]:
    """Returns a function that turns actions, one for each environment, into a batch.

    Policies of Stable-Baselines3 choose integer actions (of a ``MultiBinary``) as floats.

    Args:
        space: The action space of one environment.
        num_envs: The number of actions.
    """
    if describe(space)[0] != "leaf":
        return functools.partial(_batch, space, num_envs)
    dtype: np.dtype[Any] = np.dtype(space.dtype)
    return _unchanged if dtype.kind in "fc" else functools.partial(_whole, dtype)


def _batch(space: Space[Any], num_envs: int, actions: Any) -> Any:
    return batch_of_actions(space, actions, num_envs)


def _unchanged(actions: Any) -> Any:
    return actions


def _whole(dtype: np.dtype[Any], actions: Any) -> Any:
    """Returns actions that are whole numbers as numbers of an integer ``dtype``."""
    if not isinstance(actions, np.ndarray) or actions.dtype.kind != "f":
        return actions
    with np.errstate(invalid="ignore"):  # of NaN
        cast = actions.astype(dtype)
    if not np.array_equal(cast, actions):
        raise ValueError(
            f"actions of {dtype} must be whole numbers that fit it, got {shown(actions)}"
        )
    return cast
