"""Keywords of native vector environments, and the keywords in their specs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from cartwheel.native.wrappers import instead_of

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

#: The vector entry point of native environments' specs; a string, so that specs survive JSON.
NATIVE_ENTRY_POINT = "cartwheel.registry.native:make_native"
#: Keywords of :class:`~cartwheel.VectorEnv` that change nothing for native environments.
_IDLE = ("shared_memory", "copy", "context", "daemon")
#: Keywords of :class:`~cartwheel.VectorEnv` that can have only one value here, and the reason.
_FIXED = {
    "worker": (None, "the loop of their workers cannot be replaced"),
    "observation_mode": ("same", "their observation spaces are always equal"),
    "on_worker_death": ("raise", "their workers are threads, which only die with the process"),
}


def environment_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """Returns the keywords of the environment, without keywords of all vector environments.

    Raises:
        ValueError: A keyword of vector environments has a value that is not possible here.
    """
    for name, (only, why) in _FIXED.items():
        if name in keywords and keywords[name] != only:
            raise ValueError(
                f"`{name}` of native environments must be {only!r}, got {keywords[name]!r}: {why}."
            )
    return {name: value for name, value in keywords.items() if name not in (*_IDLE, *_FIXED)}


def read_spec(spec: EnvSpec) -> tuple[str, dict[str, Any]]:
    """Returns the native id in a registered spec, and its other keywords.

    Raises:
        TypeError: The spec is not the spec of a native environment without wrappers.
    """
    if spec.vector_entry_point != NATIVE_ENTRY_POINT:
        raise TypeError(f"{spec.id} is not native: use cartwheel.make_vec(spec, num_envs)")
    if "vectorization_mode" in spec.kwargs:
        raise TypeError(
            "this is the spec of a vector environment, which cartwheel.make_vec(spec) rebuilds"
        )
    if spec.additional_wrappers:
        names = ", ".join(wrapper.name for wrapper in spec.additional_wrappers)
        raise TypeError(
            f"{spec.id} is wrapped by {names}, but native environments cannot be wrapped one by "
            f"one. {instead_of(spec.additional_wrappers)}"
        )
    keywords = copy.deepcopy(spec.kwargs)
    return keywords.pop("env_id"), keywords
