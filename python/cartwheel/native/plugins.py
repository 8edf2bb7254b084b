"""Environments of plugins: extension modules and shared libraries with a table of environments."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cartwheel._cartwheel import load_plugin as _load_plugin
from cartwheel._cartwheel import register_plugin
from cartwheel.native.registration import enter

if TYPE_CHECKING:
    from types import ModuleType

#: The attribute of an extension module with its table of environments.
_ATTRIBUTE = "__cartwheel__"


def register(module: ModuleType | str | object) -> list[str]:
    """Registers the environments of an extension module with cartwheel and Gymnasium.

    A package of environments calls it when it is imported, in its ``__init__.py``::

        import cartwheel
        from my_game import _my_game

        cartwheel.register(_my_game)

    Then ``cartwheel.make_vec("my_game/Maze-v0", 64)`` works after ``import my_game``, as do
    ``gymnasium.make``, ``gymnasium.make_vec``, :class:`~cartwheel.NativeEnv`,
    :class:`~cartwheel.NativeVectorEnv` and ``cartwheel.envpool.make``. All of them import the
    package themselves if the id names it: ``"my_game:my_game/Maze-v0"``.

    Registering the same module again has no effect. Two plugins may have the same name if their ids
    differ. An id that is in Gymnasium's registry already keeps its entry there.

    Args:
        module: The module, or its name, which is imported. Its attribute ``__cartwheel__`` is a
            ``PyCapsule`` named ``cartwheel.plugin``; the macro ``cartwheel::plugin!`` of the Rust
            crate makes both. The capsule itself is accepted, too.

    Returns:
        The ids of its environments.

    Raises:
        TypeError: The attribute does not exist, or is not such a capsule.
        ImportError: The plugin does not fit this version of cartwheel, or its table is incomplete.
            The message names the plugin, both versions and the remedy. Or the module does not
            exist.
        ValueError: Another plugin has one of the ids, or an id has no namespace of its own.
    """
    if isinstance(module, str):
        module = importlib.import_module(module)
    name = getattr(module, "__name__", None)
    env_ids = register_plugin(getattr(module, _ATTRIBUTE, module), name)
    enter(env_ids, name)
    return env_ids


def load_plugin(path: str | os.PathLike[str]) -> list[str]:
    """Loads environments from a shared library, written in C, C++ or another language.

    The library has a symbol ``cartwheel_plugin``, a table that ``cartwheel.h`` describes.
    The library stays loaded until the program ends. Loading it again has no effect.

    Worker processes that are not forked from this process have to load it themselves.

    Args:
        path: The file, such as ``"./libmaze.so"``.

    Returns:
        The ids of its environments, which work like those of :func:`register`.

    Raises:
        FileNotFoundError: The file does not exist.
        ImportError: It is not a shared library for this machine, lacks the symbol, does not fit
            this version of cartwheel, or its table is incomplete.
        ValueError: As for :func:`register`.
    """
    path = Path(path).absolute()  # the loader would look for a bare name elsewhere
    if not path.is_file():
        raise FileNotFoundError(f"there is no library {os.fspath(path)!r}")
    env_ids = _load_plugin(path)
    enter(env_ids)
    return env_ids


def import_envs(module: str) -> None:
    """Imports a module that registers environments, or that is itself a plugin.

    Raises:
        ModuleNotFoundError: The module does not exist, or the name is empty or begins with a dot.
    """
    if not module or module.startswith("."):
        raise ModuleNotFoundError(f"{module!r} is not the full name of a module")
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(  # Gymnasium's words
            f"{error}. Environment registration via importing a module failed. Check whether "
            f"'{module}' contains env registration and can be imported."
        ) from error
    if hasattr(imported, _ATTRIBUTE):
        register(imported)


def without_module(env_id: str) -> str:
    """Imports the module that an id names, as in ``"module:Env-v0"``; returns the id alone.

    Raises:
        ModuleNotFoundError: The module does not exist.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        import_envs(module)
    return name
