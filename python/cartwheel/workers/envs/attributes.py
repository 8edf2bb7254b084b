"""Attributes of environments by names that may have dots: ``"sim.dt"``.

The first part is an attribute of an environment or of one of its wrappers, as in Gymnasium, and so
is a part that follows an environment. Other parts are plain attributes. An attribute whose own name
has dots is found by its whole name.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel._internal.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Methods that ``call`` refuses, as ``AsyncVectorEnv.call`` does.
_RESERVED = ("reset", "step", "close", "_setattr", "_check_spaces")


def read(env: Any, name: str, *, reserve: bool) -> Any:
    """Returns an attribute of an environment; with ``reserve``, not ``reset``, ``step``, ``close``.

    Raises:
        AttributeError: A part of the name does not exist.
        ValueError: The attribute is refused.
    """
    owner, last = _owner(env, name)
    if reserve and last in _RESERVED and (owner is env or isinstance(owner, gym.Env)):
        raise ValueError(
            f"Trying to call function `{name}` with `call`, use `{last}` directly instead."
        )
    return env.get_wrapper_attr(name) if owner is env and last == name else _part(owner, last, name)


def exists(env: Any, name: str) -> bool:
    """Whether an environment has an attribute."""
    try:
        read(env, name, reserve=False)
    except AttributeError:
        return False
    return True


def write(env: Any, name: str, value: Any) -> None:
    """Sets an attribute of an environment; an attribute of a part must exist.

    Raises:
        AttributeError: A part of the name does not exist, or the attribute cannot be set.
    """
    owner, last = _owner(env, name)
    if last != name:
        _part(owner, last, name)
    if owner is env or isinstance(owner, gym.Env):
        owner.set_wrapper_attr(last, value)
    else:
        setattr(owner, last, value)


def _owner(env: Any, name: str) -> tuple[Any, str]:
    """Returns the object that has the attribute, and the name of the attribute there."""
    if not isinstance(name, str) or "." not in name or env.has_wrapper_attr(name):
        return env, name
    *path, last = name.split(".")
    owner = env
    for part in path:
        owner = _part(owner, part, name)
    return owner, last


def _part(owner: Any, part: str, name: str) -> Any:
    """Returns the attribute ``part`` of an object; ``name`` is the whole name, for the error."""
    within = list(_chain(owner)) if isinstance(owner, gym.Env) else [owner]
    for one in within:
        try:
            return getattr(one, part)
        except AttributeError:  # the environment within may have it
            if inspect.getattr_static(one, part, None) is not None:
                raise  # by the code of a property
    names = {known for one in within for known in dir(one)}
    public = [known for known in names if part[:1] == "_" or known[:1] != "_"]
    meant = suggest(part, sorted(public))
    hint = "" if meant is None else f": did you mean {meant!r}?"
    raise AttributeError(f"{name!r}: {type(owner).__name__} has no attribute {part!r}{hint}")


def own_attribute(one: Any, name: str, default: Any = None) -> Any:
    """Returns an attribute that an object has itself, and not by its class, or ``default``.

    No code of the object runs. Its ``__dict__`` is not asked for: from Python 3.11 on, an object
    that was asked for it once takes up to three times as long to read its attributes, as an
    environment does in its steps.
    """
    of_class = next((vars(kind)[name] for kind in type(one).__mro__ if name in vars(kind)), default)
    if hasattr(type(of_class), "__get__"):
        return default  # a property, or a method
    try:
        found = object.__getattribute__(one, name)
    except AttributeError:
        return default
    return default if found is of_class else found


def _chain(env: Any) -> Any:
    """Yields an environment, and the environments in it if it is a wrapper."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def called(env: gym.Env[Any, Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a method of an environment, which may belong to a wrapper."""
    return env.get_wrapper_attr(name)(*args, **kwargs)


def wrapper_names(env: gym.Env[Any, Any]) -> set[tuple[str, str]]:
    """Returns module and name of the class of each wrapper, and of the classes it derives from.

    A class is sent to a process by its name, which would import its module there, or by its
    contents, which creates another class. Names can be compared without either.
    """
    wrappers = (one for one in _chain(env) if isinstance(one, gym.Wrapper))
    return {name_of(base) for one in wrappers for base in type(one).__mro__}


def name_of(cls: type[Any]) -> tuple[str, str]:
    """Returns module and name of a class."""
    return cls.__module__, cls.__qualname__
