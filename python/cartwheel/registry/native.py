"""The native environments in Gymnasium's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel._cartwheel import native_envs
from cartwheel.native.keywords import NAMESPACE, NATIVE_ENTRY_POINT
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from cartwheel.choices import Mode

#: A string, so that the specs survive JSON.
_SINGLE_ENTRY_POINT = "cartwheel.native.env:NativeEnv"


def make_native(
    num_envs: int,
    *,
    env_id: str,
    autoreset_mode: Mode | None = None,
    **keywords: Any,
) -> NativeVectorEnv:
    """The vector entry point of every id in the namespace ``cartwheel/``.

    Like :class:`NativeVectorEnv`, but ``autoreset_mode=None`` means the default mode.
    """
    if autoreset_mode is not None:
        keywords["autoreset_mode"] = autoreset_mode
    return NativeVectorEnv(env_id, num_envs, **keywords)


def register_native() -> None:
    """Registers the native environments with Gymnasium, unless they are registered."""
    for env_id, limit, threshold, _ in native_envs():
        if NAMESPACE + env_id not in gym.registry:
            gym.register(
                NAMESPACE + env_id,
                entry_point=_SINGLE_ENTRY_POINT,
                vector_entry_point=NATIVE_ENTRY_POINT,
                max_episode_steps=limit,
                reward_threshold=threshold,
                kwargs={"env_id": env_id},
            )
