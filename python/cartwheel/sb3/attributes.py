"""Attributes and methods of rows, for the methods of Stable-Baselines3 that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.workers.envs.attributes import called, name_of, wrapper_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.native.vector_env import NativeVectorEnv
    from cartwheel.vector.vector_env import VectorEnv


#: Attributes of native environments other than parameters, by the vector environment's name.
_SHARED = {
    "render_mode": "render_mode",
    "spec": "spec",
    "metadata": "metadata",
    "observation_space": "single_observation_space",
    "action_space": "single_action_space",
}


class PythonRows:
    """Environments written in Python, in their workers."""

    def __init__(self, envs: VectorEnv[Any, Any]) -> None:
        self._envs = envs

    def has(self, name: str, rows: list[int]) -> bool:
        """Whether all of these environments have an attribute."""
        return all(self._envs._asked("has_attr", "has", name, rows))

    def get(self, name: str, rows: list[int]) -> list[Any]:
        """Reads an attribute, without calling it."""
        return list(self._envs._asked("get_attr", "read", name, rows))

    def set(self, name: str, value: Any, rows: list[int]) -> None:
        """Sets an attribute of the outermost wrappers."""
        self._envs._applied("set_attr", name, rows, setattr, name, value)

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], rows: list[int]
    ) -> list[Any]:
        """Calls a method."""
        return list(self._envs._applied("env_method", name, rows, called, name, args, kwargs))

    def are_wrapped(self, wrapper: type[Any], rows: list[int]) -> list[bool]:
        """Whether environments have a wrapper of this class."""
        found = self._envs._applied("env_is_wrapped", "", rows, wrapper_names)
        return [name_of(wrapper) in names for names in found]


class NativeRows:
    """Environments written in Rust: they have parameters, and no wrappers."""

    def __init__(self, envs: NativeVectorEnv[Any, Any]) -> None:
        self._envs = envs

    def has(self, name: str, _: list[int]) -> bool:
        """Whether the environments, which are all alike, have an attribute."""
        drawn = ("np_random", "np_random_seed")
        return name in _SHARED or name in drawn or name in self._envs.parameters

    def get(self, name: str, rows: list[int]) -> list[Any]:
        """Reads a parameter, random numbers, or what all environments share."""
        if name in _SHARED:
            return [getattr(self._envs, _SHARED[name])] * len(rows)
        if name == "render":
            raise AttributeError("native environments have no attribute 'render'; call get_images")
        return list(self._envs.get_attr(name, env_index=rows)) if rows else []

    def set(self, name: str, value: Any, rows: list[int]) -> None:
        """Sets a parameter."""
        if rows:
            self._envs.set_attr(name, [value] * len(rows), env_index=rows)

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], rows: list[int]
    ) -> list[Any]:
        """Calls one of the methods for attributes, or ``render``."""
        methods: dict[str, Callable[..., list[Any]]] = {
            "render": lambda: list(self._envs.render(rows)) if rows else [],
            "get_wrapper_attr": lambda name: self.get(name, rows),
            "has_wrapper_attr": lambda name: [self.has(name, rows)] * len(rows),
            "set_wrapper_attr": lambda name, value: self._set_all(name, value, rows),
        }
        if name not in methods:
            raise AttributeError(
                f"{self._envs.env_id} is native and has no method {name!r}, only "
                f"{', '.join(methods)}"
            )
        return methods[name](*args, **kwargs)

    def _set_all(self, name: str, value: Any, rows: list[int]) -> list[bool]:
        self.set(name, value, rows)
        return [True] * len(rows)

    def are_wrapped(self, _: type[Any], rows: list[int]) -> list[bool]:
        """Whether environments have a wrapper of this class: they have none."""
        return [False] * len(rows)
