"""Gymnasium's spaces of native environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

if TYPE_CHECKING:
    from gymnasium.spaces import Space


def as_space(description: Any) -> Space[Any]:
    """Returns Gymnasium's space for a description of ``NativeEnvs.spaces``."""
    kind, *parts = description
    if kind == "Box":
        dtype, shape, low, high = parts
        low, high = (
            np.full(shape, bound, dtype)
            if isinstance(bound, float | int)
            else np.asarray(bound, dtype).reshape(shape)
            for bound in (low, high)
        )
        return Box(low, high, tuple(shape), np.dtype(dtype).type)
    if kind == "Discrete":
        number, start = parts
        return Discrete(number, start=start)
    if kind == "MultiDiscrete":
        shape, counts, starts = parts
        return MultiDiscrete(np.reshape(counts, shape), start=np.reshape(starts, shape))
    if kind == "MultiBinary":
        return MultiBinary(parts[0])
    if kind == "Tuple":
        return Tuple([as_space(part) for part in parts[0]])
    return Dict({key: as_space(part) for key, part in parts[0]})
