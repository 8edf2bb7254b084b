"""Vector environments by the ids of Gymnasium's registry."""

from __future__ import annotations

import copy
import importlib
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, VectorizeMode

from cartwheel.arguments import keywords_of
from cartwheel.native.keywords import NATIVE_ENTRY_POINT
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.registry.recipe import ENTRY_POINT, Recipe
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel.choices import Mode, Vectorization

#: Keywords of :class:`VectorEnv` that :func:`make_vec` hands on; all others are the environment's.
#: So is ``worker``, which can only be ``None`` there.
_VECTOR_KEYWORDS = keywords_of(VectorEnv) - {"env_fns", "worker"}


def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    *,
    autoreset_mode: Mode | None = None,
    wrappers: Sequence[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]] | None = None,
    vectorization_mode: VectorizeMode | Vectorization | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
) -> VectorEnv | NativeVectorEnv:
    """Makes a vector environment of ``num_envs`` environments of a registered id.

    Ids in the namespace ``cartwheel/`` give a :class:`NativeVectorEnv`, all others a
    :class:`VectorEnv`. So does a native id with the ``vectorization_mode`` ``"sync"`` or
    ``"async"``: its environments are each a :class:`NativeEnv` then, which can be wrapped but has
    to be called from Python.

    Args:
        id: An id of Gymnasium's registry, also with a module to import first (``"module:Env-v0"``),
            or an ``EnvSpec``, also the ``spec`` of an earlier result, which is rebuilt as it was.
        num_envs: Number of environments.
        autoreset_mode: When a finished environment restarts, as for :class:`VectorEnv`.
        wrappers: Functions applied to each environment, in order, in its worker.
        vectorization_mode: ``"sync"`` for a :class:`VectorEnv` with the executor ``"inline"``,
            ``"async"`` for one with ``"process"``, where ``executor`` is not given.
        vector_kwargs: Keywords of :class:`VectorEnv`, for those that an environment has too: what
            is among the others by a name that is here belongs to the environment.
        **kwargs: Keywords of :class:`VectorEnv` (``executor``, ``num_workers``, …); the rest goes
            to ``gymnasium.make``, and so to the environment, among it ``max_episode_steps`` and
            ``render_mode``.

    Returns:
        The vector environment, whose ``spec`` rebuilds it, here and in ``gymnasium.make_vec``.

    Raises:
        gymnasium.error.Error: There is no such id, or it has no entry point.
        ValueError: There is no such vectorization mode.
        Exception: As for :class:`VectorEnv`.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.make_vec("CartPole-v1", 4, executor="inline", max_episode_steps=50)
        >>> cartwheel.make_vec(envs.spec).num_envs
        4
    """
    spec, chosen_mode = _find(id), _as_mode(vectorization_mode)
    stored_mode = _as_mode(spec.kwargs.get("vectorization_mode"))
    vector_kwargs = dict(vector_kwargs or {})
    if autoreset_mode is not None:
        vector_kwargs["autoreset_mode"] = autoreset_mode
    one_by_one = (chosen_mode or stored_mode) in _EXECUTORS
    if spec.vector_entry_point == NATIVE_ENTRY_POINT and not one_by_one:
        if wrappers:
            raise gym.error.Error(
                f"{spec.id} is native: its environments cannot be wrapped, except one by one with "
                'vectorization_mode="sync" or "async".'
            )
        return _make_native(spec, num_envs, vector_kwargs, kwargs)
    if chosen_mode is VectorizeMode.VECTOR_ENTRY_POINT and spec.vector_entry_point != ENTRY_POINT:
        raise gym.error.Error(
            f"The vector entry point of {spec.id} is not cartwheel's: use gymnasium.make_vec."
        )
    recipe = Recipe.of(spec, num_envs)
    if wrappers is not None:
        recipe.wrappers = tuple(wrappers)
    if chosen_mode in _EXECUTORS:
        recipe.vector_kwargs["executor"] = _EXECUTORS[chosen_mode]
    plain = (kwargs.keys() & _VECTOR_KEYWORDS) - vector_kwargs.keys()
    recipe.vector_kwargs |= vector_kwargs | {name: kwargs.pop(name) for name in sorted(plain)}
    recipe.env_kwargs |= kwargs
    return recipe.make()


def _make_native(
    spec: EnvSpec, num_envs: int, vector_kwargs: dict[str, Any], kwargs: dict[str, Any]
) -> NativeVectorEnv:
    """The native vector environment of a spec, through Gymnasium, which gives it its spec."""
    for name in vector_kwargs.keys() & kwargs.keys():
        raise TypeError(
            f"`{name}` is given twice: {spec.id} has no keyword of this name besides that of the "
            "vector environment."
        )
    spec = copy.deepcopy(spec)
    spec.kwargs.pop("vectorization_mode", None)
    envs = gym.make_vec(spec, num_envs, **vector_kwargs, **kwargs)
    assert isinstance(envs, NativeVectorEnv)
    return envs


#: What Gymnasium's modes of stepping single environments are here.
_EXECUTORS = {VectorizeMode.SYNC: "inline", VectorizeMode.ASYNC: "process"}


def _as_mode(mode: VectorizeMode | str | None) -> VectorizeMode | None:
    try:
        return None if mode is None else VectorizeMode(mode)
    except ValueError:
        modes = [valid.value for valid in VectorizeMode]
        raise ValueError(f"Invalid vectorization mode: {mode!r}, valid modes: {modes}") from None


def _find(id_or_spec: Any) -> EnvSpec:
    """The spec of an id, whose module is imported first if it names one."""
    if isinstance(id_or_spec, EnvSpec):
        return id_or_spec
    if not isinstance(id_or_spec, str):
        raise gym.error.Error(f"Invalid id type: {type(id_or_spec)}. Expected `str` or `EnvSpec`")
    module, colon, name = id_or_spec.rpartition(":")
    if colon:
        importlib.import_module(module)
    return gym.spec(name)
