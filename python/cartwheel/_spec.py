"""Specs of vector environments of registered environments, and their reconstruction."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib
import json
import re
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, VectorizeMode, load_env_creator, parse_env_id

from cartwheel._internal.suggestions import (
    keywords_of,
    listed,
    reset_advice,
    shown,
    suggest,
    wrapper_advice,
)
from cartwheel.errors import add_note
from cartwheel.vector.memory_plan import require_python_rows
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The vector entry point of specs of :meth:`Recipe.as_spec`; a string, so that they survive JSON.
ENTRY_POINT = "cartwheel._spec:rebuild"
#: The keyword of such a spec that has everything except keywords of the environment.
_OWN = "cartwheel"
#: The modules that register the environments of a namespace, if they have another name.
_MODULES = {"ALE": "ale_py", "Meta-World": "metaworld", "dm_control": "shimmy"}
#: The modules that register environments without a namespace, by a part of their ids.
_FAMILIES = {"BabyAI-": "minigrid", "MiniGrid-": "minigrid", "NoFrameskip-": "ale_py"}
#: Keywords of ``gymnasium.make`` itself, and of ``make_vec``.
_OF_MAKE = ("max_episode_steps", "disable_env_checker", "render_mode", "num_envs")


@dataclasses.dataclass
class Recipe:
    """The data from which a vector environment of registered environments is made.

    Attributes:
        spec: The spec of a single environment, without keywords.
        num_envs: Number of environments.
        env_kwargs: Keywords of ``gymnasium.make``, which passes them to the environment.
        vector_kwargs: Keywords of :class:`~cartwheel.VectorEnv`.
        wrappers: Functions applied to each environment, in order.
    """

    spec: EnvSpec
    num_envs: int
    env_kwargs: dict[str, Any]
    vector_kwargs: dict[str, Any]
    wrappers: tuple[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]], ...]

    @classmethod
    def from_spec(cls, spec: EnvSpec, num_envs: int) -> Recipe:
        """Returns the recipe of a spec.

        Args:
            spec: A registered spec, or the spec of a vector environment of Gymnasium or cartwheel.
            num_envs: Number of environments, if the spec does not have it.
        """
        single = copy.deepcopy(spec)
        kwargs, single.kwargs = single.kwargs, {}
        kwargs.pop("vectorization_mode", None)
        num_envs = kwargs.pop("num_envs", num_envs)
        if spec.vector_entry_point == ENTRY_POINT:
            return cls._stored(kwargs.pop(_OWN), num_envs, kwargs)
        vector_kwargs = dict(kwargs.pop("vector_kwargs", {}))
        return cls(single, num_envs, kwargs, vector_kwargs, tuple(kwargs.pop("wrappers", ())))

    @classmethod
    def _stored(cls, own: dict[str, Any], num_envs: int, env_kwargs: dict[str, Any]) -> Recipe:
        single = own["spec"]
        if isinstance(single, dict):  # loaded from JSON
            derived = ("namespace", "name", "version")
            fields = {name: value for name, value in single.items() if name not in derived}
            single = EnvSpec.from_json(json.dumps(fields))
        return cls(single, num_envs, env_kwargs, dict(own["vector_kwargs"]), tuple(own["wrappers"]))

    def make(self) -> VectorEnv:
        """Makes the vector environment and sets its ``spec``.

        Raises:
            gymnasium.error.Error: The spec has no entry point.
            MemoryError: There is not enough memory for so many environments.
            Exception: As for :class:`~cartwheel.VectorEnv`.
        """
        if self.spec.entry_point is None:
            raise gym.error.Error(
                f"Cannot create vectorized environment for {self.spec.id} because it doesn't have "
                "an entry point defined."
            )
        require_python_rows(self.num_envs)
        make_single = functools.partial(_make_single, self.spec, self.env_kwargs, self.wrappers)
        try:
            envs = VectorEnv([make_single] * self.num_envs, **self.vector_kwargs)
        except TypeError as error:
            self._explain(error)
            raise
        envs.spec = self.as_spec()
        return envs

    def _explain(self, error: TypeError) -> None:
        """Adds the keywords that exist as a note to the error for an unknown keyword."""
        found = re.search("unexpected keyword argument '([^']+)'", str(error))
        name = found and found[1]
        if name not in self.env_kwargs:
            return
        own: set[str] = set()
        with contextlib.suppress(Exception):  # an entry point may be anything that can be called
            creator = self.spec.entry_point
            own |= keywords_of(load_env_creator(creator) if isinstance(creator, str) else creator)
        others = keywords_of(VectorEnv) - {"env_fns", "worker"}
        value = self.env_kwargs[name]
        place, meant = reset_advice(name, value), suggest(name, {*own, *others, *_OF_MAKE})
        if place is None and meant is not None:
            add_note(error, f"did you mean `{meant}`?")
        else:
            add_note(
                error,
                place
                or f"{self.spec.id} has the keywords {listed(sorted(own))}. If `{name}` is one of "
                f'its attributes, set it by `envs.set_attr("{name}", {shown(value)})`.',
            )

    def as_spec(self) -> EnvSpec:
        """Returns the recipe as a spec, which also works with ``gymnasium.make_vec``.

        A spec of Gymnasium's own vector environments cannot have keywords of cartwheel, such as
        ``executor``. So this spec names a vector entry point, :func:`rebuild`. With an entry
        point, Gymnasium allows neither vector keywords nor wrappers, so one keyword has all of
        them.
        """
        spec = copy.deepcopy(self.spec)
        own = {
            "spec": copy.deepcopy(self.spec),
            "vector_kwargs": dict(self.vector_kwargs),
            "wrappers": self.wrappers,
        }
        spec.vector_entry_point = ENTRY_POINT
        spec.additional_wrappers = ()
        spec.kwargs = {
            **self.env_kwargs,
            "vectorization_mode": VectorizeMode.VECTOR_ENTRY_POINT.value,
            _OWN: own,
        }
        if spec.max_episode_steps is not None:  # `gymnasium.make_vec` adds it, too
            spec.kwargs.setdefault("max_episode_steps", spec.max_episode_steps)
        if self.num_envs != 1:
            spec.kwargs["num_envs"] = self.num_envs
        return spec


def rebuild(num_envs: int, **kwargs: Any) -> VectorEnv:
    """Makes the vector environment of a spec: the entry point for ``gymnasium.make_vec``.

    Args:
        num_envs: Number of environments.
        **kwargs: The keywords of the spec; all additional ones belong to the environment.
    """
    own = kwargs.pop(_OWN)
    return Recipe._stored(own, num_envs, kwargs).make()


def _make_single(
    spec: EnvSpec, env_kwargs: dict[str, Any], wrappers: tuple[Callable[[Any], Any], ...]
) -> gym.Env[Any, Any]:
    env: gym.Env[Any, Any] = gym.make(spec, **env_kwargs)
    try:
        for wrapper in wrappers:
            env = wrapper(env)
    except BaseException:
        env.close()
        raise
    return env


#: The vector entry point of specs that :class:`~cartwheel.ale.AleVectorEnv` makes; a string, so
#: that they survive JSON.
ALE_ENTRY_POINT = "cartwheel.ale:AleVectorEnv"
#: The vector entry point with which ale-py registers its ids.
_OWN_ENTRY_POINT_OF_ALE = "ale_py.vector_env:AtariVectorEnv"


def module_advice(error: Exception, name: str) -> str:
    """Says how to name the module that registers an id, which the registry does not have.

    The result is empty if the namespace is known, or neither it nor the name tells the module.
    """
    module = None
    if isinstance(error, gym.error.NamespaceNotFound):
        namespace = parse_env_id(name)[0] or ""
        module = _MODULES.get(namespace, namespace)
    elif isinstance(error, gym.error.NameNotFound) and "/" not in name:
        module = next((module for part, module in _FAMILIES.items() if part in name), None)
    if module is None:
        return ""
    return f"if {module!r} is a package of environments, name it, too: {f'{module}:{name}'!r}"


def is_made_by_ale(id_or_spec: Any, keywords: dict[str, Any]) -> bool:
    """Whether ale-py makes the vector environment; if so, its ids are registered afterwards.

    Raises:
        ImportError: ale-py is not installed.
    """
    executor = keywords.get("executor")
    is_stored = isinstance(id_or_spec, EnvSpec) and id_or_spec.vector_entry_point == ALE_ENTRY_POINT
    if executor == "ale" or (executor is None and is_stored):
        importlib.import_module("cartwheel.ale")
        return True
    return False


def as_ale_spec(spec: EnvSpec, wrappers: Iterable[Any], *, one_by_one: bool) -> EnvSpec:
    """Returns the spec with the vector entry point of :class:`~cartwheel.ale.AleVectorEnv`.

    Args:
        spec: The registered spec, or the spec of an earlier vector environment.
        wrappers: Functions for single environments, of which ale-py has none.
        one_by_one: Whether ``vectorization_mode`` requests single environments.

    Raises:
        ValueError: ale-py has no vector environment of this id, or single environments were
            requested.
        gymnasium.error.Error: There are wrappers.
    """
    if spec.vector_entry_point not in (_OWN_ENTRY_POINT_OF_ALE, ALE_ENTRY_POINT):
        raise ValueError(
            f"executor='ale' is for ids such as 'ALE/Pong-v5', of which ale-py has a vector "
            f"environment; got {spec.id!r}."
        )
    if one_by_one:
        raise ValueError(
            "executor='ale' steps no single environments: leave out `vectorization_mode`, or use "
            "executor='process'."
        )
    all_wrappers = [*spec.additional_wrappers, *wrappers]
    if all_wrappers:
        raise gym.error.Error(
            "executor='ale' has no single environments to wrap. "
            + wrapper_advice(all_wrappers, "executor='process'")
        )
    spec = copy.deepcopy(spec)
    spec.vector_entry_point = ALE_ENTRY_POINT
    return spec
