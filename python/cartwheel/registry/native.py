"""The vector entry point of native environments in Gymnasium's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from cartwheel.choices import Mode


def make_native(
    num_envs: int,
    *,
    env_id: str,
    autoreset_mode: Mode | None = None,
    **keywords: Any,
) -> NativeVectorEnv:
    """The vector entry point of every native id.

    Like :class:`NativeVectorEnv`, but ``autoreset_mode=None`` means the default mode.
    """
    if autoreset_mode is not None:
        keywords["autoreset_mode"] = autoreset_mode
    return NativeVectorEnv(env_id, num_envs, **keywords)
