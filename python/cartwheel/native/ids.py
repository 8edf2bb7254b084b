"""Ids of native environments in the forms that users may pass."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from cartwheel._cartwheel import native_envs
from cartwheel._internal.suggestions import shown, suggest
from cartwheel.native.plugins import without_module
from cartwheel.native.registration import NAMESPACE


def find_env_id(name: str) -> str | None:
    """Returns the id of a native environment without ``cartwheel/``, or ``None`` if there is none.

    Args:
        name: An id, with or without the namespace ``cartwheel/``.
    """
    env_id = name.removeprefix(NAMESPACE)
    return env_id if any(env_id == known for known, *_ in native_envs()) else None


def as_env_id(env_id: Any) -> str:
    """Returns the id of a native environment without ``cartwheel/``.

    Args:
        env_id: An id, with or without the namespace ``cartwheel/``, possibly with a module to
            import first: ``"my_game:my_game/Maze-v0"``.

    Raises:
        TypeError: ``env_id`` is not a string.
        ValueError: The environment does not exist.
        ModuleNotFoundError: The module does not exist.
    """
    if not isinstance(env_id, str):
        raise TypeError(f"`env_id` must be an id or an EnvSpec, got {shown(env_id)}.")
    name = without_module(env_id)
    found = find_env_id(name)
    if found is not None:
        return found
    raise ValueError(f"there is no native environment {env_id!r}: {_hint(env_id, name)}")


def python_hint(name: str) -> str | None:
    """Returns a hint for an id that is registered but not native, or ``None`` for other ids."""
    if name not in gym.registry:
        return None
    return f"it is Gymnasium's, and cartwheel.make_vec({name!r}, num_envs) steps it in Python"


def _hint(env_id: str, name: str) -> str:
    """Returns a suggestion for an id that does not exist."""
    name, names = name.removeprefix(NAMESPACE), [known for known, *_ in native_envs()]
    newest = [known for known in names if known.rpartition("-")[0] == name]
    meant = newest[-1] if newest else suggest(name, names)
    if meant is not None:
        return f"did you mean {meant!r}?"
    namespace, slash, _ = name.partition("/")
    if slash and ":" not in env_id:
        return (
            f"import the package that has it first, as in '{namespace}:{name}', or load its "
            "library by `cartwheel.load_plugin(path)`."
        )
    in_python = python_hint(name)
    return "`python -m cartwheel envs` lists them." if in_python is None else f"{in_python}."
