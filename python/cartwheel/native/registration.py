"""The native environments in Gymnasium's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium as gym

from cartwheel._cartwheel import native_envs

if TYPE_CHECKING:
    from collections.abc import Collection

#: The namespace of the environments that come with cartwheel.
NAMESPACE = "cartwheel/"
# Entry points are strings, so that specs survive JSON.
#: The entry points of single native environments: those that come with cartwheel, and plugins'.
_SINGLE_ENTRY_POINT = "cartwheel.native.env:NativeEnv"
_PLUGIN_ENTRY_POINT = "cartwheel.native.env:_PluginEnv"
#: The vector entry point of native environments.
NATIVE_ENTRY_POINT = "cartwheel.native.vector_env:make_native"


def registered_id(env_id: str) -> str:
    """Returns the id of a native environment in Gymnasium's registry.

    Ids of plugins have a namespace of their own. The others are in the namespace ``cartwheel/``.
    """
    return env_id if "/" in env_id else NAMESPACE + env_id


def enter(env_ids: Collection[str], module: str | None = None) -> None:
    """Enters native environments into Gymnasium's registry, unless their ids are there already.

    Args:
        env_ids: Ids of :func:`~cartwheel._cartwheel.native_envs`.
        module: The module that registers the ids. It becomes a part of the specs, so that another
            process can make the environments of a pickled spec.
    """
    for env_id, limit, threshold, _ in native_envs():
        if env_id in env_ids and registered_id(env_id) not in gym.registry:
            gym.register(
                registered_id(env_id),
                entry_point=_PLUGIN_ENTRY_POINT if "/" in env_id else _SINGLE_ENTRY_POINT,
                vector_entry_point=NATIVE_ENTRY_POINT,
                max_episode_steps=limit,
                reward_threshold=threshold,
                kwargs={"env_id": env_id if module is None else f"{module}:{env_id}"},
            )


def register_native() -> None:
    """Enters the environments that come with cartwheel into Gymnasium's registry."""
    enter([env_id for env_id, *_ in native_envs()])
