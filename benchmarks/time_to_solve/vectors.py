"""The vector environments under a trainer, each as its package makes it.

Gymnasium's and cartwheel's are in ``SAME_STEP``, which trainers expect, and which SB3's processes
do. EnvPool only has ``NEXT_STEP``: CleanRL and SB3 take the steps that reset as steps, as they do
in the scripts of EnvPool's authors.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecEnvWrapper

import cartwheel
from cartwheel.bench.envpool import load_package
from cartwheel.sb3 import CartwheelVecEnv
from cartwheel.wrappers import FilterObservation, FlattenObservation

if TYPE_CHECKING:
    from benchmarks.time_to_solve.score import Score
    from benchmarks.time_to_solve.tasks import Task


def make_env(env_id: str, keys: tuple[str, ...]) -> gym.Env[Any, Any]:
    """Makes one environment of Gymnasium, of a ``Dict`` only ``keys``; a single one is flat."""
    if env_id.startswith("MiniGrid"):
        load_package("minigrid")  # registers its ids
    env: Any = gym.make(env_id)
    if keys and isinstance(env.observation_space, gym.spaces.Dict):
        env = gym.wrappers.FilterObservation(env, keys)
        if len(keys) == 1:
            env = gym.wrappers.FlattenObservation(env)
    return env  # type: ignore[no-any-return]


class _Subproc(VectorEnv[Any, Any, Any]):
    """SB3's processes with Gymnasium's interface."""

    def __init__(self, envs: SubprocVecEnv) -> None:
        self.envs, self.num_envs = envs, envs.num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = (
            envs.observation_space,
            envs.action_space,
        )
        self.observation_space = batch_space(envs.observation_space, self.num_envs)
        self.action_space = batch_space(envs.action_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.envs.seed(seed)
        return self.envs.reset(), {}

    def step(self, actions: Any) -> Any:
        observations, rewards, ended, row_infos = self.envs.step(actions)
        truncated = np.array([row["TimeLimit.truncated"] for row in row_infos])
        infos: dict[str, Any] = {}
        if ended.any():
            finals = np.full(self.num_envs, None, object)
            for row in np.flatnonzero(ended):
                finals[row] = row_infos[row]["terminal_observation"]
            infos = {"final_obs": finals, "_final_obs": ended}
        return observations, rewards, ended & ~truncated, truncated, infos

    def close_extras(self, **_: Any) -> None:
        self.envs.close()


class _Seeded(VectorWrapper):
    """EnvPool, which gets its seed when it is made."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.env.reset()


def vector(name: str, task: Task, rows: int, seed: int, keys: tuple[str, ...]) -> Any:
    """Makes the vector environment ``name``; observations are as those of ``make_env``."""
    env_fns = [functools.partial(make_env, task.env_id, keys)] * rows
    mode = AutoresetMode.SAME_STEP
    if name == "sync":
        return gym.vector.SyncVectorEnv(env_fns, autoreset_mode=mode)
    if name == "async":
        return gym.vector.AsyncVectorEnv(env_fns, autoreset_mode=mode)
    if name == "subproc":
        return _Subproc(SubprocVecEnv(env_fns))
    envs: Any
    if name == "envpool":
        pool = load_package("envpool").make_gymnasium(task.env_id, num_envs=rows, seed=seed)
        envs = _Seeded(pool)
    elif task.native_id == task.env_id:
        envs = cartwheel.VectorEnv(env_fns, autoreset_mode="same_step")
    else:
        if task.native_id.startswith("cartwheel_minigrid"):
            load_package("cartwheel_minigrid")
        envs = cartwheel.NativeVectorEnv(task.native_id, rows, autoreset_mode="same_step")
    if keys and isinstance(envs.single_observation_space, gym.spaces.Dict):
        envs = FilterObservation(envs, keys)
        if len(keys) == 1:
            envs = FlattenObservation(envs)
    return envs


class _AsVecEnv(VecEnv):
    """A vector environment of Gymnasium's interface for SB3."""

    def __init__(self, envs: Any) -> None:
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._envs, self._actions = envs, None
        self._same_step = envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP

    def reset(self) -> Any:
        return self._envs.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observations, rewards, terminated, truncated, infos = self._envs.step(self._actions)
        row_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = terminated | truncated
        for row in np.flatnonzero(ended):
            finals = infos["final_obs"] if self._same_step else observations
            row_infos[row]["terminal_observation"] = finals[row]
            row_infos[row]["TimeLimit.truncated"] = bool(truncated[row] and not terminated[row])
        return observations, rewards, ended, row_infos

    def close(self) -> None:
        self._envs.close()

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *_: Any, **__: Any) -> list[Any]:
        raise NotImplementedError


def vec_env(name: str, task: Task, rows: int, seed: int, keys: tuple[str, ...]) -> VecEnv:
    """Makes the vector environment ``name`` for SB3."""
    if name == "subproc":
        return SubprocVecEnv([functools.partial(make_env, task.env_id, keys)] * rows)
    envs = vector(name, task, rows, seed, keys)
    if name == "cartwheel" and isinstance(envs, cartwheel.VectorEnv | cartwheel.NativeVectorEnv):
        return CartwheelVecEnv(envs)
    return _AsVecEnv(envs)


class ScoredVecEnv(VecEnvWrapper):
    """Environments of SB3 whose steps are timed and scored."""

    def __init__(self, envs: VecEnv, score: Score) -> None:
        """Wraps ``envs``."""
        super().__init__(envs)
        self._score = score

    def reset(self) -> Any:
        """Resets the rows."""
        with self._score.environments():
            return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        """Sends the actions."""
        with self._score.environments():
            self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Waits for the results."""
        with self._score.environments():
            result = self.venv.step_wait()
        self._score.add(result[1], result[2])
        return result
