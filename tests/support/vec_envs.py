"""Vector environments for Stable-Baselines3, and its own ones as the reference."""

import importlib
from dataclasses import dataclass

import numpy as np

from tests.support.comparison import assert_identical
from tests.support.executors import EVERY_EXECUTOR, Executor


@dataclass(frozen=True)
class VecEnvs(Executor):
    """Builds a ``CartwheelVecEnv`` with this executor."""

    def __call__(self, env_fns, **keywords):
        keywords = {"executor": self.name, **self.keywords, **keywords}
        return importlib.import_module("cartwheel.sb3").CartwheelVecEnv(env_fns, **keywords)


KINDS = [VecEnvs(each.name, each.keywords) for each in EVERY_EXECUTOR]
INLINE, THREAD, PROCESS = KINDS[:3]


def theirs(name):
    """A class of Stable-Baselines3's vector environments."""
    return getattr(importlib.import_module("stable_baselines3.common.vec_env"), name)


def native(case, num_envs, **keywords):
    """Native rows of one of `tests.support.cases`."""
    sb3 = importlib.import_module("cartwheel.sb3")
    env_id = f"cartwheel/{case.env_id}"
    return sb3.CartwheelVecEnv(env_id, num_envs, **case.keywords, **keywords)


def plain(value):
    """The same with ``dict`` for its subclasses, and without the times of episodes."""
    if isinstance(value, dict):
        timed = value.keys() == {"r", "l", "t"}
        return {key: plain(part) for key, part in value.items() if not (timed and key == "t")}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def assert_same_reset(envs, oracle):
    assert_identical(plain(envs.reset()), plain(oracle.reset()), "observations")
    assert_identical(plain(list(envs.reset_infos)), plain(list(oracle.reset_infos)), "reset infos")


def assert_same_steps(envs, oracle, steps, *, seed=5):
    """Takes the same steps in both; returns how many episodes ended."""
    space = envs.action_space
    space.seed(seed)
    ended = 0
    for step in range(steps):
        chosen = [space.sample() for _ in range(envs.num_envs)]
        ours, expected = envs.step(chosen), oracle.step(chosen)
        assert_identical(plain(ours), plain((*expected[:3], list(expected[3]))), f"step {step}")
        reset_infos = plain(list(envs.reset_infos)), plain(list(oracle.reset_infos))
        assert_identical(*reset_infos, f"reset infos of step {step}")
        ended += int(np.sum(expected[2]))
    return ended
