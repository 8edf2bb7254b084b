"""Converts observations to another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space

from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class DtypeObservation(ObservationWrapper):
    """Converts observations to another dtype, as NumPy's ``astype`` does.

    Args:
        envs: A vector environment whose observations are one array.
        dtype: A dtype of NumPy.

    Raises:
        TypeError: Observations are not of a ``Box``, ``Discrete``, ``MultiDiscrete`` or
            ``MultiBinary`` space, or ``dtype`` is no dtype of numbers.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], dtype: Any) -> None:
        """Checks the arguments."""
        try:
            given = None if dtype is None else np.dtype(dtype)
        except TypeError:
            given = None
        if given is None or given.kind not in "biuf":
            raise TypeError(f"`dtype` must be a dtype of numbers, got {dtype!r}.")
        super().__init__(envs)
        space = self._space_before
        self.dtype = dtype
        converted: Space[Any]
        if isinstance(space, Box):
            low, high = space.low, space.high
            if np.issubdtype(dtype, np.floating):  # the Box would warn of lower precision
                with np.errstate(over="ignore"):
                    low, high = low.astype(dtype), high.astype(dtype)
            converted = Box(low, high, shape=space.shape, dtype=dtype)
        elif isinstance(space, Discrete):
            last = space.start + space.n - 1
            converted = Box(int(space.start), int(last), shape=(), dtype=dtype)
        elif isinstance(space, MultiDiscrete):
            converted = MultiDiscrete(space.nvec, dtype=dtype, start=space.start)
        elif isinstance(space, MultiBinary):
            converted = Box(0, 1, shape=space.shape, dtype=dtype)
        else:
            raise TypeError(
                "DtypeObservation needs observations of a Box, Discrete, MultiDiscrete or "
                f"MultiBinary space, got {space}."
            )
        self._set_observation_space(converted)
        self._dtype = converted.dtype

    def _observe(self, observations: Any) -> Any:
        return observations.astype(self._dtype, copy=False)
