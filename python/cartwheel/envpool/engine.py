"""The vector environment that steps a task's environments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gymnasium.wrappers import TimeLimit

from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel.envpool.players import PlayersEnv
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.vector.vector_env import VectorEnv

if TYPE_CHECKING:
    import gymnasium as gym

    from cartwheel._internal.literals import Executor
    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


class NativePoolEnvs(NativeVectorEnv[Any, Any]):
    """Native environments of a pool."""

    _class_name = "EnvPool"


class PythonPoolEnvs(VectorEnv[Any, Any]):
    """Environments of a pool that are written in Python."""

    _class_name = "EnvPool"


def start(task: Task, config: Config) -> NativePoolEnvs | PythonPoolEnvs:
    """Starts the environments of a pool: native ones on threads, others with ``executor``."""
    shared: dict[str, Any] = {
        "autoreset_mode": config.autoreset_mode,
        "num_workers": min(config.num_threads, config.num_envs) or None,
        "batch_size": config.batch_size,
        "timeout": config.timeout,
        "on_done": config.on_done,
        "max_batches": config.max_batches,
    }
    offset, limit = config.thread_affinity_offset, config.max_episode_steps
    if task.make_env is None:
        return NativePoolEnvs(
            task.task_id,
            config.num_envs,
            max_episode_steps=-1 if limit is None else limit,
            executor=config.executor or "auto",
            thread_affinity_offset=None if offset < 0 else offset,
            **shared,
            **config.options,
        )

    def make_env() -> gym.Env[Any, Any]:
        return make_one(task, config)

    executor: Executor = config.executor or "process"
    envs = PythonPoolEnvs([make_env] * config.num_envs, executor=executor, **shared)
    check_rewards_are_numbers(envs, "cartwheel.envpool", closes=True)
    if offset >= 0:
        threads = [thread.native_id for thread in envs._group.threads]
        pin([process.pid for process in envs.processes] + threads, offset)
    return envs


def make_one(task: Task, config: Config) -> gym.Env[Any, Any]:
    """Makes one environment of a task that is written in Python."""
    assert task.make_env is not None, "native environments are made by the core"
    limit = config.max_episode_steps
    if task.limits_itself:  # -1 means no limit in Gymnasium
        keywords = {**config.options, "max_episode_steps": -1 if limit is None else limit}
        made: gym.Env[Any, Any] = task.make_env(**keywords)
        return made
    env = task.make_env(**config.options)
    env = PlayersEnv(env, config.max_num_players) if task.parallel else env
    return env if limit is None else TimeLimit(env, limit)


def pin(workers: list[int], offset: int) -> None:
    """Pins workers to consecutive processors of this program, from ``offset`` on.

    Does nothing on systems without CPU affinity, such as macOS.

    Args:
        workers: Process ids, or native ids of threads: for Linux, both are thread ids.
        offset: The index of the first worker's processor, modulo the number of processors.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    processors = sorted(os.sched_getaffinity(0))
    for worker, number in enumerate(workers):
        os.sched_setaffinity(number, {processors[(offset + worker) % len(processors)]})
