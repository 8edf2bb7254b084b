"""Gymnasium's spaces and specs of native environments."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, VectorizeMode
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

if TYPE_CHECKING:
    from collections.abc import Callable

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
    if kind == "Text":
        min_length, max_length, charset = parts
        return Text(max_length, min_length=min_length, charset=charset)
    if kind == "Tuple":
        return Tuple([as_space(part) for part in parts[0]])
    return Dict({key: as_space(part) for key, part in parts[0]})


def vector_spec(
    constructor: Callable[..., None], arguments: dict[str, Any], native_id: str
) -> EnvSpec | None:
    """Returns the spec from which ``gymnasium.make_vec`` makes an equal vector environment.

    Args:
        constructor: The constructor, whose defaults the spec leaves out.
        arguments: The arguments of the constructor.
        native_id: The id in Gymnasium's registry.

    Returns:
        The spec; ``None`` if the id is not registered.
    """
    given = arguments["env_id"]
    registered = given if isinstance(given, EnvSpec) else gym.registry.get(native_id)
    if registered is None:
        return None
    spec = copy.deepcopy(registered)
    for name, parameter in inspect.signature(constructor).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and arguments[name] != parameter.default:
            spec.kwargs[name] = arguments[name]
    spec.kwargs |= arguments["options"]
    if spec.max_episode_steps is not None:
        spec.kwargs.setdefault("max_episode_steps", spec.max_episode_steps)
    if arguments["num_envs"] != 1:
        spec.kwargs["num_envs"] = arguments["num_envs"]
    spec.kwargs["vectorization_mode"] = VectorizeMode.VECTOR_ENTRY_POINT.value
    return spec
