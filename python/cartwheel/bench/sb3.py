"""Stable-Baselines3's vector environments: all in the caller's process, or a process for each.

A step is ``VecEnv.step`` with a batch of actions that was sampled before, as its algorithms call
it: the environments' steps, a copy of the observations, rewards in ``float32`` and a list of infos.
It resets an environment in the step that ends its episode. Most other contenders count the reset as
a step; CartPole's episodes have some 22 steps with random actions, so these steps do up to a
twentieth more.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gymnasium.vector.utils import batch_space

from cartwheel.bench.packages import load, quickest_start_method, why_not_loaded
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.arguments import EnvFn


def why_not() -> str | None:
    """Why Stable-Baselines3 cannot take part; ``None`` when it can."""
    return why_not_loaded("stable_baselines3", ": pip install stable-baselines3")


def dummy(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``DummyVecEnv``, which steps the environments in turn."""
    return _runner(_classes().DummyVecEnv(list(env_fns)))


def subproc(env_fns: Sequence[EnvFn]) -> VectorRunner:
    """``SubprocVecEnv``, which has a process for each environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        method = quickest_start_method()
        return _runner(_classes().SubprocVecEnv(list(env_fns), start_method=method))


def _runner(envs: Any) -> VectorRunner:
    envs.seed(0)
    envs.reset()
    return VectorRunner(envs, sample_actions(batch_space(envs.action_space, envs.num_envs)))


def _classes() -> Any:
    return load("stable_baselines3.common.vec_env")
