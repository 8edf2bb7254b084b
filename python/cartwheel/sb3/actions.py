"""Actions in the form of Stable-Baselines3, as batches of an action space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector.utils import concatenate, create_empty_array

from cartwheel.near_misses import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space

#: Spaces whose batches are arrays.
_ARRAYS = (Box, Discrete, MultiDiscrete, MultiBinary)


def batches_of(space: Space[Any], num_envs: int) -> Callable[[Any], Any]:
    """Returns a function that turns actions, one for each environment, into a batch.

    Policies of Stable-Baselines3 choose integer actions (of a ``MultiBinary``) as floats.

    Args:
        space: The action space of one environment.
        num_envs: The number of actions.
    """
    if isinstance(space, _ARRAYS):
        dtype = np.dtype(space.dtype)
        return _unchanged if dtype.kind in "fc" else lambda actions: _whole(actions, dtype)

    def batch(actions: Any) -> Any:
        singles = list(actions)
        if len(singles) != num_envs:
            raise ValueError(
                f"expected {num_envs} actions (one per environment), got {len(singles)}"
            )
        empty: Any = create_empty_array(space, num_envs)
        return concatenate(space, singles, empty)

    return batch


def _unchanged(actions: Any) -> Any:
    return actions


def _whole(actions: Any, dtype: np.dtype[Any]) -> Any:
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
