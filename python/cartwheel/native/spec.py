"""The specs of native vector environments, as ``gymnasium.make_vec`` sets them."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, VectorizeMode

if TYPE_CHECKING:
    from collections.abc import Callable


def vector_spec(
    constructor: Callable[..., None], arguments: dict[str, Any], native_id: str
) -> EnvSpec | None:
    """Returns the spec from which ``gymnasium.make_vec`` makes an equal vector environment.

    Args:
        constructor: The constructor, whose defaults the spec leaves out.
        arguments: What the constructor was called with.
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
