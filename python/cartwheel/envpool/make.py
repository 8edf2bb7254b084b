"""Pools by task id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.envpool.config import Config
from cartwheel.envpool.dm_pool import DMEnvPool
from cartwheel.envpool.gym_pool import GymEnvPool
from cartwheel.envpool.gymnasium_pool import GymnasiumEnvPool
from cartwheel.envpool.registry import find_task
from cartwheel.envpool.spec import EnvSpec

if TYPE_CHECKING:
    from cartwheel.choices import EnvType
    from cartwheel.envpool.pool import EnvPool


def make(task_id: str, env_type: EnvType = "gymnasium", **keywords: Any) -> EnvPool:
    """Makes a pool of environments, by the keywords of ``envpool.make``.

    Args:
        task_id: A native environment, with or without ``cartwheel/`` (``python -m cartwheel envs``
            lists them), which runs on threads; a task of :func:`~cartwheel.envpool.register`, or
            any id of Gymnasium's registry, also with a module to import first
            (``"module:Env-v0"``), which run in worker processes.
        env_type: The form of the results: ``"gymnasium"``, ``"gym"`` (the same, unless
            ``gym_reset_return_info`` is false) or ``"dm"``.
        **keywords: What follows; anything else is the environment's.
        num_envs: Number of environments; 1 by default.
        batch_size: Environments that ``recv`` returns; 0, the default, means ``num_envs``. With
            fewer they are those that are done first (asynchronous mode).
        num_threads: Threads, or worker processes; 0, the default, means one per usable processor.
            There is at most one per environment, and a greater number counts as ``num_envs``: so
            programs written for large machines run everywhere. Results do not depend on it in
            synchronous mode.
        seed: Environment ``i`` is reset with ``seed + i`` the first time; or a list with one seed
            each. By default the seed is drawn from the system, so that two runs are not the same
            by accident, and is kept in ``config["seed"]``. (EnvPool's default is always 42.)
        env_seed: One seed each, another way to write a list for ``seed``; empty by default. It is
            there so that ``make(task_id, **spec.config._asdict())`` makes the same pool again.
        max_episode_steps: Steps after which an episode is truncated; by default that of the task;
            ``None`` for no limit.
        thread_affinity_offset: Pin threads or worker processes to consecutive processors from this
            one on; -1, the default, to leave that to the system. The calling thread is never
            pinned, so that ``executor="inline"`` takes no other value.
        reward_threshold: Kept in ``spec.reward_threshold``; by default that of the task.
        gym_reset_return_info: False, with ``env_type="gym"``, for the interface of gym before 0.26:
            ``reset`` returns observations only, and a step four values.
        max_num_players: The most players of an environment of several players; by default as many
            as it has possible agents.
        autoreset_mode: When a finished environment restarts: a
            ``gymnasium.vector.AutoresetMode`` or its name. ``"next_step"``, the default, is what
            EnvPool does. ``"same_step"`` is not for ``env_type="dm"`` nor several players.
        on_done: What sending to an environment that is over means in the mode ``"disabled"``:
            ``"raise"``, the default, or ``"freeze"``, which is not for several players. As for
            :class:`~cartwheel.VectorEnv`.
        executor: As for :class:`~cartwheel.VectorEnv` or :class:`~cartwheel.NativeVectorEnv`.
        max_slabs: As for :class:`~cartwheel.VectorEnv`.
        timeout: Seconds that ``recv`` waits at most; by default as long as it takes.
        render_mode: What ``render`` gives: ``"rgb_array"``, or another mode of the environments.

    Returns:
        A :class:`~cartwheel.envpool.GymnasiumEnvPool`, :class:`~cartwheel.envpool.GymEnvPool` or
        :class:`~cartwheel.envpool.DMEnvPool`.

    Raises:
        gymnasium.error.UnregisteredEnv: There is no such task.
        ValueError: A keyword has an invalid value.
        Exception: What an environment's constructor raises, among it ``TypeError`` or
            ``ValueError`` for a keyword that it does not have.

    Example:
        >>> from cartwheel import envpool
        >>> envs = envpool.make("CartPole-v1", "gymnasium", num_envs=3, seed=7)
        >>> observations, info = envs.reset()
        >>> info["elapsed_step"]
        array([0, 0, 0], dtype=int32)
        >>> envs.close()
    """
    task = find_task(task_id)
    config = Config.of(task, env_type, keywords)
    if env_type == "dm":
        return DMEnvPool(task, config)
    if config.gym_reset_return_info:
        return GymnasiumEnvPool(task, config)
    return GymEnvPool(task, config)


def make_gymnasium(task_id: str, **keywords: Any) -> GymnasiumEnvPool:
    """``make(task_id, "gymnasium", **keywords)``."""
    pool = make(task_id, "gymnasium", **keywords)
    assert isinstance(pool, GymnasiumEnvPool)
    return pool


def make_gym(task_id: str, **keywords: Any) -> GymnasiumEnvPool | GymEnvPool:
    """``make(task_id, "gym", **keywords)``."""
    pool = make(task_id, "gym", **keywords)
    assert isinstance(pool, GymnasiumEnvPool | GymEnvPool)
    return pool


def make_dm(task_id: str, **keywords: Any) -> DMEnvPool:
    """``make(task_id, "dm", **keywords)``."""
    pool = make(task_id, "dm", **keywords)
    assert isinstance(pool, DMEnvPool)
    return pool


def make_spec(task_id: str, **keywords: Any) -> EnvSpec:
    """A task's spaces and configuration, without a pool.

    One environment is made to see its spaces, and closed.

    Args:
        task_id: As for :func:`make`.
        **keywords: As for :func:`make`.

    Raises:
        Exception: As :func:`make`.
    """
    task = find_task(task_id)
    env_type = keywords.pop("env_type", "gymnasium")
    return EnvSpec.of(task, Config.of(task, env_type, keywords))
