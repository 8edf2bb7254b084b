"""Reshapes observations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class ReshapeObservation(ObservationWrapper):
    """Gives the observations of each environment another shape; bounds move with their numbers.

    Args:
        envs: A vector environment whose observations are of a ``Box`` space.
        shape: The new shape of one observation, of as many numbers.

    Raises:
        TypeError: The space is no ``Box``, or ``shape`` no tuple of integers.
        ValueError: The new shape has another number of elements.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], shape: tuple[int, ...]) -> None:
        """Checks the shape."""
        super().__init__(envs)
        space = self._space_before
        if not isinstance(space, Box):
            raise TypeError(f"ReshapeObservation needs observations of a Box space, got {space}.")
        if not isinstance(shape, tuple) or not all(
            isinstance(size, int | np.integer) for size in shape
        ):
            raise TypeError(f"`shape` must be a tuple of integers, got {shape!r}.")
        if any(size < 1 for size in shape) or math.prod(shape) != math.prod(space.shape):
            raise ValueError(
                f"`shape` must have as many elements as observations of shape {space.shape}, got "
                f"{shape}."
            )
        self.shape = tuple(map(int, shape))
        self._set_observation_space(
            Box(
                space.low.reshape(shape),
                space.high.reshape(shape),
                shape=self.shape,
                dtype=space.dtype.type,
            )
        )

    def _observe(self, observations: Any) -> Any:
        return observations.reshape((len(observations), *self.shape))
