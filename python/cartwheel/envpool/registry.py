"""Task ids and their environments."""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

from cartwheel._cartwheel import native_envs
from cartwheel._internal.process import process_lock
from cartwheel._spec import module_advice
from cartwheel.native.ids import find_env_id
from cartwheel.native.mujoco.env import is_mujoco
from cartwheel.native.plugins import without_module
from cartwheel.native.registration import NAMESPACE, NATIVE_ENTRY_POINT, registered_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gymnasium.envs.registration import EnvSpec


@dataclass(frozen=True)
class Task:
    """A task id and the construction of its environments.

    Attributes:
        task_id: The id.
        make_env: Makes one environment in Python; ``None`` for a native environment.
        find_constructor: Returns the function or class that takes the environment's keywords;
            ``None`` for a native environment.
        parallel: Whether the environment is a PettingZoo parallel environment.
        limits_itself: Whether ``make_env`` takes ``max_episode_steps``, as ``gymnasium.make`` does.
        max_episode_steps: The step limit; ``None`` for no limit.
        reward_threshold: The reward at which the task counts as solved, or ``None``.
        defaults: Keywords whose defaults differ from those of ``make``.
    """

    task_id: str
    make_env: Callable[..., Any] | None
    find_constructor: Callable[[], Callable[..., Any]] | None
    parallel: bool = False
    limits_itself: bool = False
    max_episode_steps: int | None = None
    reward_threshold: float | None = None
    defaults: dict[str, Any] = field(default_factory=dict)


_REGISTERED: dict[str, Task] = {}
#: Held while a task is registered: of two threads with one id, one gets the error.
_registering = process_lock()
#: Gymnasium's ids that need a version of MuJoCo older than those that cartwheel supports.
_UNSUPPORTED = ("Pusher-v4",)
#: Dtypes of infos for which EnvPool and Gymnasium differ, by task.
_INFO_DTYPES = {
    "CliffWalking-v1": {"prob": np.float32},
    "CliffWalkingSlippery-v1": {"prob": np.float32},
}


def register(
    task_id: str,
    entry_point: Callable[..., Any] | str,
    *,
    aliases: Iterable[str] = (),
    parallel: bool = False,
    max_episode_steps: int | None = None,
    reward_threshold: float | None = None,
    **defaults: Any,
) -> None:
    """Registers a task written in Python; EnvPool's function takes compiled modules.

    Args:
        task_id: The new id.
        entry_point: Makes one environment: a function or class, or its name as
            ``"module:attribute"``, which is imported when the first environment is made.
        aliases: Further ids of the same task.
        parallel: Whether the environment is a PettingZoo parallel environment: batches get a player
            dimension. All its agents must have the same spaces, of arrays of fixed shape.
        max_episode_steps: Steps after which an episode is truncated.
        reward_threshold: The reward at which it counts as solved.
        **defaults: Defaults of :func:`~cartwheel.envpool.make`'s keywords, and keywords of the
            environment.

    Raises:
        TypeError: ``aliases`` is a text.
        ValueError: An id is already registered.
    """
    if isinstance(aliases, str):
        raise TypeError(f"`aliases` must be a list of ids, got {aliases!r}: [{aliases!r}].")
    ids = (task_id, *aliases)
    find_constructor = _finding(entry_point)
    task = Task(
        task_id,
        lambda **keywords: find_constructor()(**keywords),
        find_constructor,
        parallel=parallel,
        max_episode_steps=max_episode_steps,
        reward_threshold=reward_threshold,
        defaults=defaults,
    )
    with _registering:
        for name in ids:
            if name in _REGISTERED or find_env_id(name) is not None or name in gym.registry:
                raise ValueError(
                    f"the task id {name!r} is taken: register another one, such as 'my_{name}'"
                )
        _REGISTERED.update(dict.fromkeys(ids, task))


def _finding(entry_point: Callable[..., Any] | str) -> Callable[[], Callable[..., Any]]:
    if callable(entry_point):
        return lambda: entry_point
    module, colon, name = entry_point.partition(":")
    if not colon:
        raise ValueError(f'`entry_point` must be "module:attribute", got {entry_point!r}')

    def find_constructor() -> Callable[..., Any]:
        constructor: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return constructor

    return find_constructor


def list_all_envs() -> list[str]:
    """Returns every task id, sorted: native, registered, and from Gymnasium's registry.

    Ids that cannot be made here are left out: their library is not installed, or Gymnasium only
    raises an error for them. The first call imports the libraries to check, which takes a moment.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries
        native = {name for name, *_ in native_envs() if not is_mujoco(name) or _loads("mujoco")}
        others = {name for name, spec in gym.registry.items() if _can_be_made(spec)}
    return sorted(native | {registered_id(name) for name in native} | others | set(_REGISTERED))


def _can_be_made(spec: EnvSpec) -> bool:
    """Whether environments of a spec that is not native can be made here."""
    creator = spec.entry_point
    if creator is None or spec.id in _UNSUPPORTED or spec.vector_entry_point == NATIVE_ENTRY_POINT:
        return False
    if callable(creator):
        # Functions of this module raise an error with the present place of the environments.
        return getattr(creator, "__module__", None) != "gymnasium.envs"
    return _loads(creator.partition(":")[0])


def _loads(module: str) -> bool:
    try:
        importlib.import_module(module)
    except Exception:  # what it imports may raise anything
        return False
    return True


def info_dtypes(task_id: str) -> dict[str, Any]:
    """Returns EnvPool's dtypes of a task's infos, where Gymnasium has other dtypes."""
    return _INFO_DTYPES.get(task_id.rpartition(":")[2].removeprefix(NAMESPACE), {})


def find_task(task_id: str) -> Task:
    """Returns the task of an id: registered, native, or from Gymnasium's registry.

    Raises:
        gymnasium.error.UnregisteredEnv: The task does not exist.
    """
    if not isinstance(task_id, str):
        raise TypeError(f"`task_id` must be a string, got {type(task_id)}")
    if task_id in _REGISTERED:
        return _REGISTERED[task_id]
    try:
        name = without_module(task_id)
        # Without a namespace, an id of a named module is that of Gymnasium.
        native = find_env_id(name if "/" in name else task_id)
        for known, limit, threshold, _ in native_envs():
            if known == native:
                return Task(known, None, None, max_episode_steps=limit, reward_threshold=threshold)
        spec = gym.spec(name)
    except (gym.error.Error, ImportError) as error:
        advice = ["cartwheel.envpool.list_all_envs() lists all"]
        if re.fullmatch(r"[A-Z]\w*-v5", task_id) and "Did you mean" not in str(error):
            advice.append(f"an Atari game is 'ale_py:ALE/{task_id}', and needs ale-py")
        elif named := module_advice(error, task_id):
            advice.append(named)
        text = "; ".join([f"there is no task {task_id!r} ({error})", *advice])
        raise gym.error.UnregisteredEnv(text) from error
    entry_point = spec.entry_point
    if entry_point is None:
        raise gym.error.UnregisteredEnv(f"{task_id!r} can only be made by gymnasium.make_vec")

    def make_env(**keywords: Any) -> gym.Env[Any, Any]:
        return gym.make(spec, **keywords)

    return Task(
        task_id,
        make_env,
        lambda: load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point,
        limits_itself=True,
        max_episode_steps=spec.max_episode_steps,
        reward_threshold=spec.reward_threshold,
    )
