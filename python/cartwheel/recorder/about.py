"""What is known of environments and episodes, as JSON."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.near_misses import keywords_of
from cartwheel.vector.pool_env import PoolVectorEnv

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

#: Keywords of ``make_vec`` that say how many environments there were, and how they were stepped.
VECTOR_KEYWORDS = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")


def to_json(value: Any, **keywords: Any) -> str:
    """Returns JSON; arrays become lists, and objects that have no form in JSON their ``repr``."""
    try:
        return json.dumps(value, default=_plain, **keywords)
    except TypeError:  # a key that is neither text nor a number
        return json.dumps(_with_names(value), default=_plain, **keywords)


def _with_names(value: Any) -> Any:
    """The value with text for every key of a dictionary."""
    if isinstance(value, dict):
        return {str(key): _with_names(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_names(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, Path) else repr(value)


def write_json(path: Path, value: Any, **keywords: Any) -> None:
    """Writes a JSON file at once: nobody sees a part of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(to_json(value, **keywords) + "\n", encoding="utf-8")
    part.replace(path)


def single_spec(envs: Any) -> EnvSpec | None:
    """Returns the spec of one environment of a vector environment; ``None`` if it has none."""
    spec: EnvSpec | None = copy.deepcopy(getattr(envs, "spec", None))
    if spec is None:
        return None
    own = spec.kwargs.pop("cartwheel", None)  # what `make_vec` adds to specs of Gymnasium's
    if own is not None:
        registered = own["spec"]
        is_read = isinstance(registered, dict)
        spec.vector_entry_point = (
            registered.get("vector_entry_point") if is_read else registered.vector_entry_point
        )
    bare = envs.unwrapped
    not_of_one = {*VECTOR_KEYWORDS}
    if isinstance(bare, PoolVectorEnv):
        not_of_one |= keywords_of(type(bare)) - {"env_id", "render_mode"}
    most = spec.kwargs.pop("max_episode_steps", None)
    if most is not None:
        spec.max_episode_steps = None if most == -1 else most
    spec.kwargs = {key: value for key, value in spec.kwargs.items() if key not in not_of_one}
    return spec


def env_info(envs: Any) -> dict[str, Any]:
    """Returns ``env_id``, ``env_kwargs`` and ``max_episode_steps`` of a vector environment."""
    spec = single_spec(envs)
    if spec is None:
        name = type(envs.unwrapped).__name__
        return {"env_id": name, "env_kwargs": {}, "max_episode_steps": None}
    return {
        "env_id": spec.id,
        "env_kwargs": spec.kwargs,
        "max_episode_steps": spec.max_episode_steps,
    }
