"""CartPole-v1 in ``CartwheelVecEnv``, against the vector environments of Stable-Baselines3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

from benchmarks.harness.claim import Claim, check
from cartwheel import NativeVectorEnv
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import ACTION_BATCHES, VectorRunner
from cartwheel.sb3 import CartwheelVecEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

ENV_ID = "CartPole-v1"
NATIVE_ID = f"cartwheel/{ENV_ID}"


def make_env() -> gym.Env[Any, Any]:
    """Makes one environment."""
    return gym.make(ENV_ID)


def contender(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """The result of ``make``, stepped with random actions of ``int64``, as policies choose them."""

    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        envs = make(env_fns)
        envs.reset()
        actions = np.random.default_rng(0).integers(0, 2, (ACTION_BATCHES, len(env_fns)))
        return VectorRunner(envs, list(actions))

    return Contender(name, build)


def native(env_fns: Sequence[EnvFn], *, monitor: bool = False) -> CartwheelVecEnv:
    """Native environments for Stable-Baselines3."""
    return CartwheelVecEnv(NATIVE_ID, len(env_fns), monitor=monitor)


DUMMY = contender("DummyVecEnv", lambda env_fns: DummyVecEnv(list(env_fns)))
SUBPROC = contender("SubprocVecEnv", lambda env_fns: SubprocVecEnv(list(env_fns)))
BARE = contender(
    "NativeVectorEnv",
    lambda env_fns: NativeVectorEnv(ENV_ID, len(env_fns), autoreset_mode="same_step"),
)
INLINE = contender("inline", lambda env_fns: CartwheelVecEnv(env_fns, executor="inline"))
PROCESS = contender("process", lambda env_fns: CartwheelVecEnv(env_fns, executor="process"))
NATIVE = contender("native", native)
MONITOR = contender("native, monitor", lambda env_fns: native(env_fns, monitor=True))
VEC_MONITOR = contender("native, VecMonitor", lambda env_fns: VecMonitor(native(env_fns)))

if __name__ == "__main__":
    check(
        "CartPole-v1 for Stable-Baselines3",
        make_env,
        {
            8: [
                Claim(PROCESS, SUBPROC, 5),
                Claim(INLINE, DUMMY, 1),
                Claim(NATIVE, SUBPROC, 60),
                Claim(MONITOR, SUBPROC, 60),
                Claim(VEC_MONITOR, SUBPROC, 30),
            ],
            64: [Claim(PROCESS, DUMMY, 1), Claim(NATIVE, BARE, 0.25), Claim(MONITOR, BARE, 0.25)],
        },
    )
