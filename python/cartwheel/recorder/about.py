"""What is known of environments and episodes, as JSON."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

#: Keywords of ``make_vec`` that say how many environments there were, and how they were stepped.
VECTOR_KEYWORDS = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")


def to_json(value: Any, **keywords: Any) -> str:
    """Returns JSON; arrays become lists, and objects that have no form in JSON their ``repr``."""
    return json.dumps(value, default=_plain, **keywords)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, Path) else repr(value)


def write_json(path: Path, value: Any, **keywords: Any) -> None:
    """Writes a JSON file at once: nobody sees a part of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(to_json(value, **keywords) + "\n", encoding="utf-8")
    part.replace(path)


def env_info(envs: Any) -> dict[str, Any]:
    """Returns ``env_id``, ``env_kwargs`` and ``max_episode_steps`` of a vector environment."""
    spec: EnvSpec | None = getattr(envs, "spec", None)
    if spec is None:
        one: Any = getattr(envs.unwrapped, "env_name", None) or type(envs.unwrapped).__name__
        return {"env_id": str(one), "env_kwargs": {}, "max_episode_steps": None}
    keywords = {key: given for key, given in spec.kwargs.items() if key not in VECTOR_KEYWORDS}
    most = getattr(envs.unwrapped, "max_episode_steps", None) or spec.max_episode_steps
    return {"env_id": spec.id, "env_kwargs": keywords, "max_episode_steps": most}


def version() -> str:
    """Returns the version of cartwheel."""
    return importlib.metadata.version("cartwheel")
