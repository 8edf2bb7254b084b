"""Descriptions of vector environments of the caller's own models, for recordings."""

from __future__ import annotations

import enum
import hashlib
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.native.mujoco.model import compiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

#: Keywords of ``NativeVectorEnv`` that say when episodes end and how they begin.
_RULES = ("ignore_terminations", "staggered_reset")
#: Arguments that a description has elsewhere, or that are not of one row.
_ELSEWHERE = ("self", "model", "num_envs", "max_episode_steps")


def describe(constructor: Callable[..., None], arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns how a vector environment was made.

    Args:
        constructor: The constructor, whose defaults the description leaves out.
        arguments: Its arguments, of which ``keywords`` are those of ``NativeVectorEnv``.

    Returns:
        ``env_id``; ``env_kwargs``, without the functions; ``max_episode_steps``; and ``functions``,
        their names.
    """
    given = {name: arguments["keywords"][name] for name in _RULES if name in arguments["keywords"]}
    functions = {}
    for name, parameter in inspect.signature(constructor).parameters.items():
        value = arguments.get(name)
        if parameter.kind is parameter.VAR_KEYWORD or name in _ELSEWHERE:
            continue
        if callable(value):
            functions[name] = _name(value)
        elif value is not parameter.default and parameter.default is not parameter.empty:
            given[name] = _plain(value)
    return {
        "env_id": "cartwheel.mujoco",
        "env_kwargs": given,
        "max_episode_steps": arguments["max_episode_steps"],
        "functions": functions,
    }


def _name(function: Any) -> str:
    of = function if hasattr(function, "__qualname__") else type(function)
    return f"{of.__module__}:{of.__qualname__}"


def _plain(value: Any) -> Any:
    """A value that ``json`` can write."""
    if isinstance(value, enum.Enum):
        return value.value
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def describe_model(mujoco: ModuleType, model: Any, xml: str | None) -> dict[str, Any]:
    """Returns the hash of a model, the version of MuJoCo that reads it, and its XML."""
    return {
        "sha256": hashlib.sha256(compiled(mujoco, model)).hexdigest(),
        "mujoco": mujoco.__version__,
        "xml": xml,
    }
