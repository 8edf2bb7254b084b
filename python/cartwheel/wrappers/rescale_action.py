"""Rescales actions linearly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import InvalidBound
from gymnasium.spaces import Box

from cartwheel.spaces.arrays import as_array
from cartwheel.wrappers.affine import Affine
from cartwheel.wrappers.transform_action import ActionWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class RescaleAction(ActionWrapper):
    """Rescales actions linearly, from new bounds to the bounds of the ``Box`` of ``envs``.

    Args:
        envs: A vector environment whose actions are of a ``Box`` space.
        min_action: The new lower bounds: a number, or an array of the shape of one action.
        max_action: The new upper bounds.

    Raises:
        TypeError: The action space is no ``Box``, or a bound is neither a number nor an array.
        ValueError: Bounds have the wrong shape, ``min_action`` is above ``max_action``, or a bound
            is infinite where the old one is finite, or the other way round.
        gymnasium.error.InvalidBound: The bounds are equal somewhere, so that the rescaling has no
            inverse.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], min_action: Any, max_action: Any) -> None:
        """Computes the rescaling."""
        super().__init__(envs)
        space = self._space_after
        if not isinstance(space, Box):
            raise TypeError(f"RescaleAction needs actions of a Box space, got {space}.")
        bounds = (min_action, max_action)
        self._affine = Affine(space, ("min_action", "max_action"), bounds, envs.num_envs)
        if np.any(self._affine.box.low == self._affine.box.high):
            raise InvalidBound(
                "`min_action` must be below `max_action` everywhere, because the rescaling has no "
                f"inverse where they are equal: got {min_action} and {max_action}."
            )
        self._set_action_space(self._affine.box)

    def _decide(self, actions: Any) -> Any:
        return self._affine.backward(as_array("actions", actions))
