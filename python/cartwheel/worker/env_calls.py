"""Functions that workers apply to their environments.

Workers import this file by name, so it imports no trainer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

if TYPE_CHECKING:
    from collections.abc import Sequence


def called(env: gym.Env[Any, Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a method of an environment, which may belong to a wrapper."""
    return env.get_wrapper_attr(name)(*args, **kwargs)


def wrapper_names(env: gym.Env[Any, Any]) -> set[tuple[str, str]]:
    """Returns module and name of the class of each wrapper, and of the classes it derives from.

    A class is sent to a process by its name, which would import its module there, or by its
    contents, which makes another class. Names can be compared without either.
    """
    names: set[tuple[str, str]] = set()
    while isinstance(env, gym.Wrapper):
        names.update(name_of(base) for base in type(env).__mro__)
        env = env.env
    return names


def name_of(cls: type[Any]) -> tuple[str, str]:
    """Returns module and name of a class."""
    return cls.__module__, cls.__qualname__
