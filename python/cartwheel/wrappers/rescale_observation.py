"""Rescales observations linearly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Box

from cartwheel.wrappers.affine import Affine
from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class RescaleObservation(ObservationWrapper):
    """Rescales observations linearly, from the bounds of their ``Box`` to other bounds.

    Args:
        envs: A vector environment whose observations are of a ``Box`` space.
        min_obs: The new lower bounds: a number, or an array of the shape of one observation.
        max_obs: The new upper bounds.

    Raises:
        TypeError: The space is no ``Box``, or a bound is neither a number nor an array.
        ValueError: Bounds have the wrong shape, ``min_obs`` is above ``max_obs``, or a bound is
            infinite where the old one is finite, or the other way round.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], min_obs: Any, max_obs: Any) -> None:
        """Computes the rescaling."""
        super().__init__(envs)
        space = self._space_before
        if not isinstance(space, Box):
            raise TypeError(f"RescaleObservation needs observations of a Box space, got {space}.")
        bounds = (min_obs, max_obs)
        self._affine = Affine(space, ("min_obs", "max_obs"), bounds, envs.num_envs)
        self._set_observation_space(self._affine.box)

    def _observe(self, observations: Any) -> Any:
        return self._affine.forward(observations)
