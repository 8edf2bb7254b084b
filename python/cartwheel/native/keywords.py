"""What keywords of native vector environments are the environments', and what specs say of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

#: The vector entry point of native environments' specs; a string, so that these survive JSON.
NATIVE_ENTRY_POINT = "cartwheel.registry.native:make_native"
#: Keywords of :class:`~cartwheel.VectorEnv` that change nothing here, whatever their value.
_IDLE = ("shared_memory", "copy", "context", "daemon")
#: Keywords of it that can have one value here, and why.
_FIXED = {
    "worker": (None, "their workers' loop cannot be replaced"),
    "observation_mode": ("same", "their observation spaces do not differ"),
    "on_worker_death": ("raise", "their workers are threads, which do not die alone"),
}


def environment_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of the environment, without those that any vector environment may be given.

    Raises:
        ValueError: One of the latter has another value than the only one that is possible here.
    """
    for name, (only, why) in _FIXED.items():
        if name in keywords and keywords[name] != only:
            raise ValueError(
                f"`{name}` of native environments must be {only!r}, got {keywords[name]!r}: {why}."
            )
    return {name: value for name, value in keywords.items() if name not in (*_IDLE, *_FIXED)}


def read_spec(spec: EnvSpec) -> tuple[str, dict[str, Any]]:
    """The native id of a registered spec, and its other keywords.

    Raises:
        TypeError: It is not that of a native environment as such.
    """
    if spec.vector_entry_point != NATIVE_ENTRY_POINT:
        raise TypeError(f"{spec.id} is not native: use cartwheel.make_vec(spec, num_envs)")
    if "vectorization_mode" in spec.kwargs:
        raise TypeError(
            "this is the spec of a vector environment, which cartwheel.make_vec(spec) rebuilds"
        )
    if spec.additional_wrappers:
        raise TypeError(
            f"{spec.id} is wrapped by {spec.additional_wrappers[-1].name}, as native vector "
            "environments cannot be: use cartwheel.make_vec(spec, num_envs, "
            'vectorization_mode="sync")'
        )
    keywords = copy.deepcopy(spec.kwargs)
    return keywords.pop("env_id"), keywords
