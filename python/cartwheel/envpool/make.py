"""Construction of pools by task id, and errors for options that do not exist."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal, overload

from cartwheel._internal.suggestions import keywords_of, suggest
from cartwheel.envpool.config import KEYWORDS, Config
from cartwheel.envpool.interfaces import DMEnvPool, GymEnvPool, GymnasiumEnvPool
from cartwheel.envpool.registry import find_task
from cartwheel.envpool.spec import EnvSpec
from cartwheel.native.ids import as_env_id
from cartwheel.native.keywords import names_of_keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cartwheel._internal.literals import EnvType
    from cartwheel.envpool.registry import Task


@overload
def make(
    task_id: str, env_type: Literal["gymnasium"] = "gymnasium", **keywords: Any
) -> GymnasiumEnvPool: ...
@overload
def make(
    task_id: str, env_type: Literal["gym"], **keywords: Any
) -> GymnasiumEnvPool | GymEnvPool: ...
@overload
def make(task_id: str, env_type: Literal["dm"], **keywords: Any) -> DMEnvPool: ...
@overload
def make(
    task_id: str, env_type: EnvType, **keywords: Any
) -> GymnasiumEnvPool | GymEnvPool | DMEnvPool: ...
def make(
    task_id: str, env_type: EnvType = "gymnasium", **keywords: Any
) -> GymnasiumEnvPool | GymEnvPool | DMEnvPool:
    """Makes a pool of environments, with the keywords of ``envpool.make``.

    Example:
        >>> from cartwheel import envpool
        >>> envs = envpool.make("CartPole-v1", "gymnasium", num_envs=3, seed=7)
        >>> observations, info = envs.reset()
        >>> info["elapsed_step"]
        array([0, 0, 0], dtype=int32)
        >>> envs.close()

    Args:
        task_id: A native environment, with or without ``cartwheel/`` (``python -m cartwheel envs``
            lists them), which runs on threads. Or a task of :func:`~cartwheel.envpool.register`, or
            any id of Gymnasium's registry, possibly with a module to import first
            (``"module:Env-v0"``); these run in worker processes.
        env_type: The form of the results: ``"gymnasium"``, ``"gym"`` (the same, unless
            ``gym_reset_return_info`` is false) or ``"dm"``.
        **keywords: The keywords below; all others go to the environment.
        num_envs: Number of environments; 1 by default.
        batch_size: Environments that ``recv`` returns; 0, the default, means ``num_envs``. With
            fewer, a batch has the environments that finish first (asynchronous mode).
        num_threads: Number of threads, or of worker processes. 0, the default, means one for each
            usable processor. There is at most one for each environment; a greater number counts as
            ``num_envs``, so that programs for large machines run everywhere. In synchronous mode,
            results do not depend on it.
        seed: Environment ``i`` is first reset with ``seed + i``; or a list with one seed for each
            environment. The default is a random seed, so that two runs differ; ``config["seed"]``
            has it. (EnvPool's default is always 42.)
        env_seed: A list for ``seed`` under another name; empty by default. It is needed so that
            ``make(task_id, **spec.config._asdict())`` makes an equal pool.
        max_episode_steps: Steps after which an episode is truncated; ``None``, or 2147483647 as
            in ``config``, for no limit. The default is the limit of the task.
        thread_affinity_offset: Pin threads or worker processes to consecutive processors from this
            number on; -1, the default: do not pin. The calling thread is never pinned, so
            ``executor="inline"`` needs -1.
        reward_threshold: Stored in ``spec.reward_threshold``; by default the task's threshold.
        gym_reset_return_info: False, with ``env_type="gym"``, for the interface of gym before 0.26:
            ``reset`` returns observations only, and a step returns four values.
        max_num_players: The maximum number of players of an environment; by default the number of
            its possible agents.
        autoreset_mode: When a finished environment restarts: a
            ``gymnasium.vector.AutoresetMode`` or its name. The default is ``"next_step"``, as in
            EnvPool. ``"same_step"`` does not work with ``env_type="dm"`` or several players.
        on_done: What a step of a finished environment does in the mode ``"disabled"``: ``"raise"``,
            the default, or ``"freeze"``, which does not work with several players. As for
            :class:`~cartwheel.VectorEnv`.
        executor: As for :class:`~cartwheel.VectorEnv` or :class:`~cartwheel.NativeVectorEnv`.
        max_batches: As for :class:`~cartwheel.VectorEnv`.
        timeout: The maximum number of seconds that ``recv`` waits; by default no limit.
        render_mode: The kind of result of ``render``: ``"rgb_array"``, or another mode of the
            environments.

    Returns:
        A :class:`~cartwheel.envpool.GymnasiumEnvPool`, :class:`~cartwheel.envpool.GymEnvPool` or
        :class:`~cartwheel.envpool.DMEnvPool`.

    Raises:
        gymnasium.error.UnregisteredEnv: The task does not exist.
        ValueError: A keyword has an invalid value.
        TypeError: A keyword is unknown, to :func:`make` and to the environment; the message names
            the known ones.
        Exception: The constructor of an environment raised it.
    """
    task = find_task(task_id)
    config = Config.from_keywords(task, env_type, keywords)
    form: type[GymnasiumEnvPool | GymEnvPool | DMEnvPool] = DMEnvPool
    if env_type != "dm":
        form = GymnasiumEnvPool if config.gym_reset_return_info else GymEnvPool
    with naming_unknown(task, config):
        return form(task, config)


def make_gymnasium(task_id: str, **keywords: Any) -> GymnasiumEnvPool:
    """Returns ``make(task_id, "gymnasium", **keywords)``."""
    pool = make(task_id, "gymnasium", **keywords)
    assert isinstance(pool, GymnasiumEnvPool)
    return pool


def make_gym(task_id: str, **keywords: Any) -> GymnasiumEnvPool | GymEnvPool:
    """Returns ``make(task_id, "gym", **keywords)``."""
    pool = make(task_id, "gym", **keywords)
    assert isinstance(pool, GymnasiumEnvPool | GymEnvPool)
    return pool


def make_dm(task_id: str, **keywords: Any) -> DMEnvPool:
    """Returns ``make(task_id, "dm", **keywords)``."""
    pool = make(task_id, "dm", **keywords)
    assert isinstance(pool, DMEnvPool)
    return pool


def make_spec(task_id: str, **keywords: Any) -> EnvSpec:
    """Returns a task's spaces and configuration, without a pool.

    One environment is made to read its spaces, and closed.

    Args:
        task_id: As for :func:`make`.
        **keywords: As for :func:`make`.

    Raises:
        Exception: As for :func:`make`.
    """
    task = find_task(task_id)
    env_type = keywords.pop("env_type", "gymnasium")
    config = Config.from_keywords(task, env_type, keywords)
    with naming_unknown(task, config):
        return EnvSpec.from_task(task, config)


@contextlib.contextmanager
def naming_unknown(task: Task, config: Config) -> Iterator[None]:
    """Adds the options that exist to the error of a constructor for an unknown option.

    Constructors may pass options on, so only the constructor's own error shows that an option is
    unknown.

    Raises:
        TypeError: The constructor does not have one of the options.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        known = _known(task, str(error), config.options)
        if known is None:
            raise
        name, own = known
        meant = suggest(name, (*own, *KEYWORDS, "render_mode"))
        hint = "" if meant is None else f"Did you mean `{meant}`? "
        raise TypeError(
            f"`{name}` is not an option of {task.task_id}. {hint}Options of the environment: "
            f"{', '.join(sorted(own)) or 'none'}. Options of cartwheel.envpool.make: "
            f"{', '.join(sorted((*KEYWORDS, 'render_mode')))}."
        ) from error


def _known(task: Task, error: str, options: Iterable[str]) -> tuple[str, Iterable[str]] | None:
    """Returns the option that an error refuses, and the environment's options."""
    for name in options:
        if error.startswith(f"`{name}` is not a keyword of"):  # of native environments
            return name, names_of_keywords(as_env_id(task.task_id)) or ()
        if f"unexpected keyword argument {name!r}" in error and task.find_constructor is not None:
            return name, keywords_of(task.find_constructor()) - {"render_mode"}
    return None
