"""The trainers: CleanRL's scripts, SB3's ``PPO`` and our examples, all unmodified."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import runpy
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

import cartwheel
from benchmarks.time_to_solve.score import Over, Scored
from benchmarks.time_to_solve.vectors import ScoredVecEnv, vec_env, vector
from cartwheel.bench.envpool import load_package
from cartwheel.wrappers import (
    ClipAction,
    NormalizeObservation,
    NormalizeReward,
    TransformObservation,
    TransformReward,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.time_to_solve.score import Score
    from benchmarks.time_to_solve.tasks import Task


def import_all(task: Task) -> None:
    """Imports everything, also what torch imports when it is first asked for."""
    for name in ("torch.utils.tensorboard", f"examples.{task.example[0]}", "envpool"):
        load_package(name)
    layer = torch.nn.Linear(1, 1)
    layer(torch.zeros(1, 1)).sum().backward()
    torch.optim.Adam(layer.parameters(), fused=True).step()


class _Silent(VectorWrapper):
    """Without infos: CleanRL's scripts expect those of Gymnasium 0.29, and only print them."""

    def step(self, actions: Any) -> Any:
        return *self.env.step(actions)[:4], {}


class _OfGym(_Silent):
    """With the methods of Gym 0.23, for which CleanRL's ``ppo.py`` was written."""

    def __init__(self, envs: Any, seed: int) -> None:
        super().__init__(envs)
        self._seed = seed

    def reset(self, **_: Any) -> Any:
        return self.env.reset(seed=self._seed)[0]

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, _ = super().step(actions)
        return observations, rewards, terminated | truncated, []


def cleanrl(task: Task, name: str, seed: int, score: Score) -> None:
    """Runs a script of CleanRL; it gets our vector environment where it makes its own."""
    script, words = task.cleanrl
    path = Path(str(importlib.metadata.distribution("cleanrl").locate_file(f"cleanrl/{script}.py")))
    with score.environments():
        envs: Any = Scored(vector(name, task, task.rows["cleanrl"], seed, ("image",)), score)
    old: Any = types.ModuleType("gym")
    old.spaces, old.vector = gym.spaces, types.SimpleNamespace()
    if script == "ppo_continuous_action":  # what its `make_env` puts around each environment
        envs = NormalizeObservation(ClipAction(envs))
        envs = TransformObservation(envs, lambda batch: np.clip(batch, -10, 10))
        envs = TransformReward(
            NormalizeReward(envs, gamma=0.99), lambda rewards: np.clip(rewards, -10, 10)
        )
        given = _Silent(envs)
    else:
        given = _OfGym(envs, seed)
    old.vector.SyncVectorEnv = lambda _: given
    flags = {
        "env-id": task.env_id,
        "seed": seed,
        "cuda": False,
        "num-envs": task.rows["cleanrl"],
        "total-timesteps": task.max_steps,
        **words,
    }
    command = [str(path), *(word for key, value in flags.items() for word in (f"--{key}", value))]
    with (
        mock.patch.dict(sys.modules, {"gym": old}),
        mock.patch.object(gym.vector, "SyncVectorEnv", return_value=given),
        mock.patch.object(sys, "argv", [str(word) for word in command]),
        contextlib.closing(given),
    ):
        runpy.run_path(str(path), run_name="__main__")


def sb3(task: Task, name: str, seed: int, score: Score) -> None:
    """Learns with SB3's ``PPO``."""
    with score.environments():
        envs: Any = ScoredVecEnv(vec_env(name, task, task.rows["sb3"], seed, ("image",)), score)
    if task.env_id.startswith("HalfCheetah"):
        envs = VecNormalize(envs)
    with contextlib.closing(envs):
        PPO("MlpPolicy", envs, seed=seed, device="cpu", **task.sb3).learn(task.max_steps)


def example(task: Task, name: str, seed: int, score: Score) -> None:
    """Runs an example of this repository; it gets our vector environment from ``make_vec``."""
    script, settings = task.example
    module = importlib.import_module(f"examples.{script}")
    rows = task.rows["examples"]
    with score.environments():
        envs = Scored(vector(name, task, rows, seed, ("direction", "image")), score)
    chosen = module.Settings(num_envs=rows, total_steps=task.max_steps, seed=seed, **settings)
    with (
        mock.patch.object(cartwheel, "make_vec", return_value=envs),
        mock.patch.object(module, "SOLVED", np.inf, create=True),  # the score decides
        contextlib.closing(envs),
    ):
        module.train(*(("same_step",) if script == "ppo" else ()), chosen)


_BY_NAME: dict[str, Callable[[Task, str, int, Score], None]] = {
    "cleanrl": cleanrl,
    "sb3": sb3,
    "examples": example,
}


def train(trainer: str, task: Task, name: str, seed: int, score: Score) -> None:
    """Trains until the score says that it is over, or the trainer has made its steps."""
    torch.set_num_threads(1)  # the networks are too small for two
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.suppress(Over),
    ):
        _BY_NAME[trainer](task, name, seed, score)
