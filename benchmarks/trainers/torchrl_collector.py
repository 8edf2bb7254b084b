"""CartPole-v1 in TorchRL's ``Collector``, against TorchRL's own ways to step many environments.

The policy is TorchRL's random one, so what is left of a step is TorchRL and the environments.
``ParallelEnv`` is measured with its default settings, one process for each environment, and in the
fastest way that was found: forked processes, at most one for each processor, each with TorchRL's
wrapper around Gymnasium's ``SyncVectorEnv``. 64 processes are forked, too: to spawn them takes
minutes.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, GymWrapper, ParallelEnv

import cartwheel
from benchmarks.harness.claim import Claim, check
from benchmarks.harness.runners import Repeated
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import Contender
from cartwheel.torchrl import CartwheelEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

ENV_ID = "CartPole-v1"
STEPS = 50


def contender(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """A collector around the environment that ``make`` returns, for batches of ``STEPS`` steps."""

    def build(env_fns: Sequence[EnvFn]) -> Repeated:
        frames = STEPS * len(env_fns)
        collector = Collector(make(env_fns), frames_per_batch=frames, total_frames=-1)
        batches = iter(collector)
        next(batches)  # which starts everything
        torch.set_num_threads(1)  # `ParallelEnv` raises it for the whole program
        return Repeated(functools.partial(next, batches), frames, collector.shutdown)

    return Contender(name, build)


def wrapped(env_fns: Sequence[EnvFn]) -> Any:
    """TorchRL's wrapper around Gymnasium's vector environment."""
    return GymWrapper(SyncVectorEnv(list(env_fns), autoreset_mode=AutoresetMode.DISABLED))


def native(env_fns: Sequence[EnvFn]) -> CartwheelEnv:
    """Native environments."""
    return CartwheelEnv(
        cartwheel.make_vec(f"cartwheel/{ENV_ID}", len(env_fns), autoreset_mode="disabled")
    )


def parallel(env_fns: Sequence[EnvFn], start_method: str | None = None) -> Any:
    """TorchRL's processes, one for each environment."""
    make = functools.partial(GymEnv, ENV_ID)
    return ParallelEnv(len(env_fns), make, mp_start_method=start_method)


def grouped(env_fns: Sequence[EnvFn]) -> Any:
    """TorchRL's processes, one for each processor, with equal shares of the environments."""
    processes = math.gcd(len(env_fns), usable_cpus())
    make = functools.partial(wrapped, list(env_fns)[::processes])
    return ParallelEnv(processes, make, mp_start_method="fork")


NATIVE = contender("native", native)
PROCESS = contender("process", lambda env_fns: CartwheelEnv(env_fns, executor="process"))
INLINE = contender("inline", lambda env_fns: CartwheelEnv(env_fns, executor="inline"))
WRAPPER = contender("GymWrapper(Sync)", wrapped)
PARALLEL = contender("ParallelEnv", parallel)
FORKED = contender("ParallelEnv, fork", lambda env_fns: parallel(env_fns, "fork"))
GROUPED = contender("ParallelEnv(Sync)", grouped)

if __name__ == "__main__":
    torch.set_num_threads(1)
    check(
        f"{ENV_ID} in TorchRL's Collector",
        functools.partial(gym.make, ENV_ID),
        {
            8: [
                Claim(PROCESS, PARALLEL, 3),
                Claim(NATIVE, PARALLEL, 6),
                Claim(PROCESS, GROUPED, 3),
                Claim(NATIVE, GROUPED, 5),
                Claim(NATIVE, WRAPPER, 1.2),
                Claim(INLINE, WRAPPER, 1.2),
            ],
            64: [
                Claim(PROCESS, FORKED, 3),
                Claim(NATIVE, FORKED, 6),
                Claim(PROCESS, GROUPED, 1.5),
                Claim(NATIVE, GROUPED, 6),
                Claim(NATIVE, WRAPPER, 1.2),
                Claim(INLINE, WRAPPER, 1.2),
            ],
        },
    )
