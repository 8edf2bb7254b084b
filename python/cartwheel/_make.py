"""Makes vector environments by the ids of Gymnasium's registry; also by ``gymnasium.make_vec``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import gymnasium as gym
from gymnasium import logger
from gymnasium.envs.registration import (
    EnvSpec,
    VectorizeMode,
    find_highest_version,
    get_env_id,
    parse_env_id,
)

from cartwheel._internal import gymnasium_classes  # noqa: F401 - before anything is patched
from cartwheel._internal.arguments import as_num_envs
from cartwheel._internal.suggestions import keywords_of, shown, wrapper_advice
from cartwheel._spec import ENTRY_POINT, Recipe, as_ale_spec, is_made_by_ale, module_advice
from cartwheel.errors import add_note
from cartwheel.native.ids import python_hint
from cartwheel.native.plugins import without_module
from cartwheel.native.registration import NAMESPACE, NATIVE_ENTRY_POINT
from cartwheel.vector.gymnasium_presets import AsyncVectorEnv, SyncVectorEnv
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from cartwheel._internal.literals import (
        Executor,
        Mode,
        NativeExecutor,
        NativeId,
        OnDone,
        OnError,
        OnWorkerDeath,
        Vectorization,
    )
    from cartwheel.ale import AleVectorEnv
    from cartwheel.native.vector_env import NativeVectorEnv

    Wrappers = Sequence[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]]

#: Keywords of :class:`VectorEnv` that :func:`make_vec` passes on. All others belong to the
#: environment, also ``worker``, which could only be ``None`` for the vector environment, and
#: ``max_episode_steps``, which is a keyword of ``gymnasium.make``.
_VECTOR_KEYWORDS = keywords_of(VectorEnv) - {"env_fns", "worker", "max_episode_steps"}


@overload
def make_vec(
    id: NativeId,
    num_envs: int = 1,
    *,
    autoreset_mode: Mode | None = None,
    vectorization_mode: Literal["vector_entry_point"] | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    executor: NativeExecutor = ...,
    on_done: OnDone = ...,
    on_error: OnError = ...,
    **kwargs: Any,
) -> NativeVectorEnv: ...
@overload
def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    *,
    autoreset_mode: Mode | None = None,
    executor: Literal["ale"],
    **kwargs: Any,
) -> AleVectorEnv: ...
@overload
def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    *,
    autoreset_mode: Mode | None = None,
    wrappers: Wrappers | None = None,
    vectorization_mode: Literal["sync", "async", VectorizeMode.SYNC, VectorizeMode.ASYNC],
    vector_kwargs: dict[str, Any] | None = None,
    executor: Executor = ...,
    on_done: OnDone = ...,
    on_error: OnError = ...,
    on_worker_death: OnWorkerDeath = ...,
    **kwargs: Any,
) -> VectorEnv: ...
@overload
def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    vectorization_mode: VectorizeMode | Vectorization | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    wrappers: Wrappers | None = None,
    *,
    autoreset_mode: Mode | None = None,
    executor: Executor = ...,
    on_done: OnDone = ...,
    on_error: OnError = ...,
    on_worker_death: OnWorkerDeath = ...,
    **kwargs: Any,
) -> VectorEnv | NativeVectorEnv: ...
def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    vectorization_mode: VectorizeMode | Vectorization | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    wrappers: Wrappers | None = None,
    *,
    autoreset_mode: Mode | None = None,
    **kwargs: Any,
) -> VectorEnv | NativeVectorEnv | AleVectorEnv:
    """Makes a vector environment of ``num_envs`` environments of a registered id.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.make_vec("CartPole-v1", 4, executor="inline", max_episode_steps=50)
        >>> cartwheel.make_vec(envs.spec).num_envs
        4

    The arguments are those of ``gymnasium.make_vec``, in the same order, and more keywords. An id
    in the namespace ``cartwheel/`` gives a :class:`NativeVectorEnv`, any other id a
    :class:`VectorEnv`. With the ``vectorization_mode`` ``"sync"`` or ``"async"``, a native id gives
    a :class:`VectorEnv`, too: each of its environments is a :class:`NativeEnv`, which can be
    wrapped but is called from Python. With ``executor="ale"`` an id ``ALE/…`` gives an
    :class:`~cartwheel.ale.AleVectorEnv`: the threads and the preprocessing of ale-py.

    Args:
        id: An id of Gymnasium's registry, possibly with a module to import first
            (``"module:Env-v0"``), or without a version, for the newest; or an ``EnvSpec``, such as
            the ``spec`` of an earlier result.
        num_envs: Number of environments. That of a spec of several counts instead, as in Gymnasium.
        vectorization_mode: ``"sync"`` makes a :class:`VectorEnv` with the executor ``"inline"``,
            ``"async"`` one with ``"process"``, unless ``executor`` is given.
        vector_kwargs: Keywords of :class:`VectorEnv` whose names the environment uses, too. A
            keyword that is both here and in ``kwargs`` goes to the environment in ``kwargs``.
            (``gymnasium.make_vec`` refuses ``vector_kwargs`` for native ids, as for every id with a
            vector entry point. There all keywords are ``kwargs``.)
        wrappers: Functions applied to each environment, in order, in its worker. Environments of a
            :class:`NativeVectorEnv` cannot be wrapped one by one: use Gymnasium's vector wrappers,
            as in ``gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)``.
        autoreset_mode: When a finished environment restarts, as for :class:`VectorEnv`.
        **kwargs: Keywords of :class:`VectorEnv` (``executor``, ``num_workers``, …). All other
            keywords go to ``gymnasium.make`` and from there to the environment, such as
            ``render_mode`` and ``max_episode_steps``; in ``vector_kwargs`` the latter is the limit
            of the :class:`VectorEnv`, which ``staggered_reset`` needs.

    Returns:
        The vector environment. Its ``spec`` rebuilds it, also by ``gymnasium.make_vec``.

    Raises:
        gymnasium.error.Error: The id does not exist (where the namespace is unknown, a note says
            how to name the package), it has no entry point, or there are wrappers for native
            environments. The message names the vector wrappers to use, if Gymnasium has them.
        ImportError: ``executor="ale"`` without ale-py: ``pip install 'cartwheel[ale]'``.
        TypeError: A keyword does not exist; the error or its note names those that exist. Or
            ``wrappers`` or ``vector_kwargs`` has the wrong type.
        ValueError: The vectorization mode does not exist, or ``num_envs`` is not a positive
            integer, or too large.
        MemoryError: There is not enough memory for so many environments.
        Exception: As for :class:`VectorEnv`.
    """
    num_envs = as_num_envs(num_envs)
    if vector_kwargs is not None and not isinstance(vector_kwargs, Mapping):
        raise TypeError(f"`vector_kwargs` must be a dictionary, got {shown(vector_kwargs)}.")
    given = None if wrappers is None else _as_wrappers(wrappers)
    by_ale = is_made_by_ale(id, {**kwargs, **(vector_kwargs or {})})
    spec, chosen_mode = _find(id), _as_mode(vectorization_mode)
    stored_mode = _as_mode(spec.kwargs.get("vectorization_mode"))
    vector_kwargs = dict(vector_kwargs or {})
    if autoreset_mode is not None:
        if "autoreset_mode" in vector_kwargs:
            raise TypeError("`autoreset_mode` is given twice: leave it out of `vector_kwargs`.")
        vector_kwargs["autoreset_mode"] = autoreset_mode
    one_by_one = (chosen_mode or stored_mode) in _EXECUTORS
    if by_ale:
        spec = as_ale_spec(spec, given or (), one_by_one=one_by_one)
        for keywords in (vector_kwargs, kwargs):
            keywords.pop("executor", None)
        by_ale_py: AleVectorEnv = _make_whole(spec, num_envs, vector_kwargs, kwargs)
        return by_ale_py
    if spec.vector_entry_point == NATIVE_ENTRY_POINT and not one_by_one:
        all_wrappers = [*spec.additional_wrappers, *(given or ())]
        if all_wrappers:
            raise gym.error.Error(
                f"{spec.id} is native: its environments cannot be wrapped one by one. "
                f"{wrapper_advice(all_wrappers)}"
            )
        native: NativeVectorEnv = _make_whole(spec, num_envs, vector_kwargs, kwargs)
        return native
    if chosen_mode is VectorizeMode.VECTOR_ENTRY_POINT and spec.vector_entry_point != ENTRY_POINT:
        raise gym.error.Error(
            f"The vector entry point of {spec.id} is not cartwheel's: use gymnasium.make_vec."
        )
    recipe = Recipe.from_spec(spec, num_envs)
    if given is not None:
        recipe.wrappers = given
    if chosen_mode in _EXECUTORS:
        recipe.vector_kwargs["executor"] = _EXECUTORS[chosen_mode]
    plain = (kwargs.keys() & _VECTOR_KEYWORDS) - vector_kwargs.keys()
    recipe.vector_kwargs |= vector_kwargs | {name: kwargs.pop(name) for name in sorted(plain)}
    recipe.env_kwargs |= kwargs
    return recipe.make()


def _as_wrappers(wrappers: Any) -> tuple[Callable[[Any], Any], ...]:
    """Returns functions as a tuple: an iterator has them only once."""
    if not isinstance(wrappers, Iterable):
        raise TypeError(f"`wrappers` must be a list of functions, got {shown(wrappers)}.")
    functions = tuple(wrappers)
    for at, function in enumerate(functions):
        if not callable(function):
            raise TypeError(f"wrappers[{at}] must be a function, got {shown(function)}.")
    return functions


def _make_whole(
    spec: EnvSpec, num_envs: int, vector_kwargs: dict[str, Any], kwargs: dict[str, Any]
) -> Any:
    """Calls the vector entry point through ``gymnasium.make_vec``, which sets the ``spec``."""
    if "env_id" in kwargs:
        raise TypeError(f"`env_id` is not a keyword of {spec.id}: pass another id as `id`.")
    for name in vector_kwargs.keys() & kwargs.keys():
        raise TypeError(
            f"`{name}` is given twice: {spec.id} has no keyword of this name, only the vector "
            "environment has one."
        )
    spec = copy.deepcopy(spec)
    spec.kwargs.pop("vectorization_mode", None)
    keywords = {**vector_kwargs, **kwargs}
    if keywords.get("max_episode_steps", -1) is None:
        del keywords["max_episode_steps"]  # Gymnasium passes the limit of the spec if there is none
    return gym.make_vec(spec, num_envs, **keywords)


#: The namespaces of PettingZoo's registry, whose environments have several agents.
_OF_PETTINGZOO = frozenset({"atari", "butterfly", "classic", "sisl"})
#: The keywords of values that are easily passed as the vectorization mode, by their place.
_KEYWORDS = dict.fromkeys(("inline", "thread", "process"), "executor")
_KEYWORDS |= dict.fromkeys(("next_step", "same_step", "disabled"), "autoreset_mode")
#: The executors of Gymnasium's vectorization modes.
_EXECUTORS = {VectorizeMode.SYNC: "inline", VectorizeMode.ASYNC: "process"}


def _as_mode(mode: VectorizeMode | str | None) -> VectorizeMode | None:
    try:
        return None if mode is None else VectorizeMode(mode)
    except ValueError:
        modes = [valid.value for valid in VectorizeMode]
        text = f"Invalid vectorization mode: {mode!r}, valid modes: {modes}"
        keyword = _KEYWORDS.get(str(mode))
        raise ValueError(
            f"{text}. Did you mean `{keyword}={mode!r}`?" if keyword else text
        ) from None


def _find(id_or_spec: Any) -> EnvSpec:
    """Returns the spec of an id as ``gymnasium.make`` does, with its warnings and errors.

    The id may name a module, which is imported, and may lack the version: the newest one is taken.
    """
    if isinstance(id_or_spec, EnvSpec):
        return id_or_spec
    if not isinstance(id_or_spec, str):
        error = gym.error.Error(f"Invalid id type: {type(id_or_spec)}. Expected `str` or `EnvSpec`")
        if callable(id_or_spec) or isinstance(id_or_spec, list | tuple):
            add_note(error, "functions are for `cartwheel.VectorEnv([function] * num_envs)`")
        raise error
    name = without_module(id_or_spec)
    namespace, base, version = parse_env_id(name)
    newest = find_highest_version(namespace, base)
    if newest is not None and version is None:
        latest = get_env_id(namespace, base, newest)
        logger.warn(
            f"Using the latest versioned environment `{latest}` instead of the unversioned "
            f"environment `{name}`."
        )
        name = latest
    elif newest is not None and version is not None and newest > version:
        logger.deprecation(
            f"The environment {name} is out of date. You should consider upgrading to version "
            f"`v{newest}`."
        )
    try:
        return gym.spec(name)
    except gym.error.NamespaceNotFound as error:
        if namespace in _OF_PETTINGZOO:
            make = f'lambda: pettingzoo.make("parallel", {name!r})'
            add_note(
                error, f"if it is PettingZoo's: `cartwheel.ParallelVectorEnv([{make}] * num_envs)`"
            )
        else:
            add_note(error, module_advice(error, name))
        raise
    except gym.error.NameNotFound as error:
        if advice := module_advice(error, name):
            add_note(error, advice)
        if name.startswith(NAMESPACE):
            in_python = python_hint(name.removeprefix(NAMESPACE))
            listed = "`python -m cartwheel envs` lists the native environments"
            add_note(error, listed if in_python is None else f"{in_python}; {listed}")
        raise


class patch_gymnasium:
    """Makes Gymnasium build cartwheel's vector environments.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> with cartwheel.patch_gymnasium():
        ...     envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync")
        >>> type(envs).__module__
        'cartwheel.vector.gymnasium_presets'

    It replaces ``gymnasium.vector.AsyncVectorEnv`` and ``gymnasium.vector.SyncVectorEnv``, which
    ``gymnasium.make_vec`` looks up at each call, also in the modules of ``gymnasium.vector`` that
    define them. (A name that was imported before, as by ``from gymnasium.vector import
    AsyncVectorEnv``, stays Gymnasium's. So import packages whose subclasses have a ``worker`` of
    their own or use private attributes, as MO-Gymnasium, before the patch.) The patch begins with
    the call of ``patch_gymnasium()``. A ``with`` statement restores the classes at its end;
    :meth:`restore` does so at any time.
    """

    def __init__(self) -> None:
        self._before = (gym.vector.AsyncVectorEnv, gym.vector.SyncVectorEnv)
        self._bind(AsyncVectorEnv, SyncVectorEnv)

    @staticmethod
    def _bind(asynchronous: Any, synchronous: Any) -> None:
        for module in (gym.vector, gym.vector.async_vector_env):
            module.AsyncVectorEnv = asynchronous  # type: ignore[attr-defined]
        for module in (gym.vector, gym.vector.sync_vector_env):
            module.SyncVectorEnv = synchronous  # type: ignore[attr-defined]

    def restore(self) -> None:
        """Restores the classes from before the patch."""
        self._bind(*self._before)

    def __enter__(self) -> Self:
        """Returns the patch, which is already active."""
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()
