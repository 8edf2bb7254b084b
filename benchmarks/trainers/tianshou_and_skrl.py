"""CartPole-v1 as Tianshou and skrl step it, against what these trainers use otherwise.

Tianshou: steps of all environments, with a reset of those whose episode is over, through
``CartwheelVectorEnv`` and through Tianshou's own classes. skrl has no vector environments of its
own: ``wrap_env`` of cartwheel's against ``wrap_env`` of Gymnasium's.

Needs both trainers: ``.venv-torch/bin/python -m benchmarks.trainers.tianshou_and_skrl``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from skrl.envs.wrappers.torch import wrap_env
from tianshou.env import DummyVectorEnv, ShmemVectorEnv, SubprocVectorEnv

import cartwheel
from benchmarks.harness.claim import Claim, check
from benchmarks.harness.runners import stepping
from cartwheel.bench.contenders import Contender
from cartwheel.tianshou import CartwheelVectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.runner import VectorRunner

ENV_ID = "CartPole-v1"
SAME_STEP = gym.vector.AutoresetMode.SAME_STEP


def drawn(num_envs: int) -> list[Any]:
    """The actions of 256 steps, the same for all contenders."""
    return list(np.random.default_rng(0).integers(0, 2, (256, num_envs)))


def of_tianshou(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """Steps as Tianshou's Collector makes them."""

    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        envs = make(env_fns)
        envs.seed(0)
        envs.reset()

        def step(actions: Any) -> None:
            _, _, terminated, truncated, _ = envs.step(actions)
            over = np.flatnonzero(terminated | truncated)
            if len(over):
                envs.reset(over)

        return stepping(len(env_fns), step, drawn(len(env_fns)), envs.close)

    return Contender(name, build)


def of_skrl(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """Steps as skrl's trainers make them."""

    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        env = wrap_env(make(env_fns), verbose=False)
        env.reset()
        actions = [torch.as_tensor(batch).unsqueeze(-1) for batch in drawn(len(env_fns))]
        return stepping(len(env_fns), env.step, actions, env.close)

    return Contender(name, build)


def native(env_fns: Sequence[EnvFn], mode: Any) -> Any:
    """As many native environments."""
    return cartwheel.make_vec(f"cartwheel/{ENV_ID}", len(env_fns), autoreset_mode=mode)


DUMMY = of_tianshou("tianshou dummy", DummyVectorEnv)
SUBPROC = of_tianshou("tianshou subproc", SubprocVectorEnv)
SHMEM = of_tianshou("tianshou shmem", ShmemVectorEnv)
TIANSHOU_INLINE = of_tianshou(
    "cartwheel inline", lambda fns: CartwheelVectorEnv(fns, executor="inline")
)
TIANSHOU_PROCESS = of_tianshou(
    "cartwheel process", lambda fns: CartwheelVectorEnv(fns, executor="process")
)
TIANSHOU_NATIVE = of_tianshou(
    "cartwheel native", lambda fns: CartwheelVectorEnv(native(fns, "disabled"))
)
SKRL_SYNC = of_skrl(
    "skrl, sync", lambda fns: gym.vector.SyncVectorEnv(fns, autoreset_mode=SAME_STEP)
)
SKRL_ASYNC = of_skrl(
    "skrl, async", lambda fns: gym.vector.AsyncVectorEnv(fns, autoreset_mode=SAME_STEP)
)
SKRL_INLINE = of_skrl(
    "skrl, inline",
    lambda fns: cartwheel.VectorEnv(fns, executor="inline", autoreset_mode="same_step"),
)
SKRL_PROCESS = of_skrl(
    "skrl, process",
    lambda fns: cartwheel.VectorEnv(fns, executor="process", autoreset_mode="same_step"),
)
SKRL_NATIVE = of_skrl("skrl, native", lambda fns: native(fns, "same_step"))

#: In this order the worker processes of all contenders are forked before there are native threads.
CLAIMS = [
    Claim(TIANSHOU_PROCESS, SUBPROC, 4),
    Claim(TIANSHOU_PROCESS, SHMEM, 4),
    Claim(SKRL_PROCESS, SKRL_ASYNC, 3),
    Claim(TIANSHOU_INLINE, DUMMY, 1),
    Claim(SKRL_INLINE, SKRL_SYNC, 1),
    Claim(TIANSHOU_NATIVE, SUBPROC, 20),
    Claim(SKRL_NATIVE, SKRL_ASYNC, 10),
]

if __name__ == "__main__":
    torch.set_num_threads(1)
    check(
        "CartPole-v1 in Tianshou and skrl", lambda: gym.make(ENV_ID), dict.fromkeys((8, 64), CLAIMS)
    )
