"""Clips actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cartwheel.spaces.arrays import as_array
from cartwheel.wrappers.transform_action import ActionWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class ClipAction(ActionWrapper):
    """Clips actions to the bounds of the action space; the new space has no bounds.

    Args:
        envs: A vector environment whose actions are of a ``Box`` space.

    Raises:
        TypeError: The action space is no ``Box``.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Checks the space."""
        super().__init__(envs)
        space = self._space_after
        if not isinstance(space, Box):
            raise TypeError(f"ClipAction needs actions of a Box space, got {space}.")
        # One copy a row: NumPy is several times slower where it repeats short rows.
        self._low, self._high = (
            np.repeat(bound[None], envs.num_envs, axis=0) for bound in (space.low, space.high)
        )
        self._set_action_space(Box(-np.inf, np.inf, shape=space.shape, dtype=space.dtype.type))

    def _decide(self, actions: Any) -> Any:
        array = as_array("actions", actions)
        rows = len(array)
        return array.clip(self._low[:rows], self._high[:rows])
