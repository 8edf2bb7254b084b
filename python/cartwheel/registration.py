"""Vector environments by the ids of Gymnasium's registry."""

from __future__ import annotations

import copy
import importlib
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, VectorizeMode

from cartwheel import _cartwheel
from cartwheel.native import NAMESPACE, NativeVectorEnv
from cartwheel.presets import AsyncVectorEnv, SyncVectorEnv
from cartwheel.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.vector import AutoresetMode
    from typing_extensions import Self

#: Keywords of :class:`VectorEnv` that :func:`make_vec` hands on; all others are the environment's.
_VECTOR_KEYWORDS = (
    "shared_memory",
    "copy",
    "context",
    "daemon",
    "observation_mode",
    "autoreset_mode",
    "max_concurrency",
    "executor",
    "num_workers",
    "batch_size",
    "on_done",
    "timeout",
    "max_slabs",
)


def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode | None = None,
    wrappers: Sequence[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]] | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
) -> VectorEnv[Any, Any] | NativeVectorEnv:
    """Makes a vector environment of ``num_envs`` environments of a registered id.

    Ids in the namespace ``cartwheel/`` give a :class:`NativeVectorEnv`, all others a
    :class:`VectorEnv`.

    Args:
        id: An id of Gymnasium's registry, also with a module to import first (``"module:Env-v0"``),
            or an ``EnvSpec``, also the ``spec`` of an earlier result, which is rebuilt as it was.
        num_envs: Number of environments.
        autoreset_mode: When a finished environment restarts, as for :class:`VectorEnv`.
        wrappers: Functions applied to each environment, in order, in its worker.
        vector_kwargs: Keywords of :class:`VectorEnv`, for those that an environment has too.
        **kwargs: Keywords of :class:`VectorEnv` (``executor``, ``num_workers``, …); the rest goes
            to ``gymnasium.make``, and so to the environment, among it ``max_episode_steps`` and
            ``render_mode``.

    Returns:
        The vector environment, whose ``spec`` rebuilds it.

    Raises:
        gymnasium.error.Error: There is no such id, or it has no entry point.
        Exception: As for :class:`VectorEnv`.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.make_vec("CartPole-v1", 4, executor="inline", max_episode_steps=50)
        >>> cartwheel.make_vec(envs.spec).num_envs
        4
    """
    spec = copy.deepcopy(_find(id))
    if spec.vector_entry_point == _NATIVE_ENTRY_POINT:
        if autoreset_mode is not None:
            kwargs["autoreset_mode"] = autoreset_mode
        if wrappers:
            raise gym.error.Error(f"{spec.id} is native: its environments cannot be wrapped.")
        envs = gym.make_vec(spec, num_envs, **(vector_kwargs or {}), **kwargs)
        assert isinstance(envs, NativeVectorEnv)
        return envs
    env_kwargs: dict[str, Any] = dict(spec.kwargs)
    spec.kwargs = {}
    num_envs = env_kwargs.pop("num_envs", num_envs)
    env_kwargs.pop("vectorization_mode", None)
    vector = dict(env_kwargs.pop("vector_kwargs", {}))
    stored_wrappers = env_kwargs.pop("wrappers", ())
    wrappers = tuple(stored_wrappers if wrappers is None else wrappers)

    vector.update(vector_kwargs or {})
    vector.update({name: kwargs.pop(name) for name in _VECTOR_KEYWORDS if name in kwargs})
    if autoreset_mode is not None:
        vector["autoreset_mode"] = autoreset_mode
    env_kwargs.update(kwargs)
    if spec.entry_point is None:
        raise gym.error.Error(
            f"Cannot create vectorized environment for {spec.id} because it doesn't have an entry "
            "point defined."
        )

    def create_single_env() -> gym.Env[Any, Any]:
        env = gym.make(spec, **env_kwargs)
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    vector_env: VectorEnv[Any, Any] = VectorEnv([create_single_env] * num_envs, **vector)
    rebuilt = copy.deepcopy(spec)
    mode = VectorizeMode.SYNC if vector_env.executor == "inline" else VectorizeMode.ASYNC
    rebuilt.kwargs = {**env_kwargs, "vectorization_mode": mode.value}
    if num_envs != 1:
        rebuilt.kwargs["num_envs"] = num_envs
    if vector:
        rebuilt.kwargs["vector_kwargs"] = vector
    if wrappers:
        rebuilt.kwargs["wrappers"] = wrappers
    vector_env.spec = rebuilt
    return vector_env


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


#: A string, so that the specs survive JSON.
_NATIVE_ENTRY_POINT = "cartwheel.registration:make_native"


def make_native(num_envs: int, *, env_id: str, **keywords: Any) -> NativeVectorEnv:
    """The vector entry point of every id in the namespace ``cartwheel/``."""
    return NativeVectorEnv(env_id, num_envs, **keywords)


def register_native() -> None:
    """Enters the native environments into Gymnasium's registry, once."""
    for env_id, limit, threshold, _ in _cartwheel.native_envs():
        if NAMESPACE + env_id not in gym.registry:
            gym.register(
                NAMESPACE + env_id,
                vector_entry_point=_NATIVE_ENTRY_POINT,
                max_episode_steps=limit,
                reward_threshold=threshold,
                kwargs={"env_id": env_id},
            )


class patch_gymnasium:
    """Makes Gymnasium build cartwheel's vector environments.

    Rebinds ``gymnasium.vector.AsyncVectorEnv`` and ``gymnasium.vector.SyncVectorEnv``, which
    ``gymnasium.make_vec`` looks up when it is called. A call is enough to patch; in a ``with``
    statement the classes are restored at its end.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> with cartwheel.patch_gymnasium():
        ...     envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync")
        >>> type(envs).__module__
        'cartwheel.presets'
    """

    def __init__(self) -> None:
        """Patches."""
        self._before = (gym.vector.AsyncVectorEnv, gym.vector.SyncVectorEnv)
        self._bind(AsyncVectorEnv, SyncVectorEnv)

    @staticmethod
    def _bind(asynchronous: Any, synchronous: Any) -> None:
        gym.vector.AsyncVectorEnv = asynchronous  # type: ignore[misc]
        gym.vector.SyncVectorEnv = synchronous  # type: ignore[misc]

    def restore(self) -> None:
        """Binds the classes that were there before."""
        self._bind(*self._before)

    def __enter__(self) -> Self:
        """The patch is in force already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Restores."""
        self.restore()
