"""CartPole-v1 as PufferLib's trainer steps it, against PufferLib's own vectorization.

Needs PufferLib 3: ``.venv-pufferlib/bin/python -m benchmarks.trainers.pufferlib_envs``.
Workers of ``pufferlib.vector.Multiprocessing`` wait actively, and so does their caller. So it runs
twice: with a worker for each core, and with a core left for the caller. Its workers go on waiting
for half a second after a run, in which no other contender is timed.
"""

from __future__ import annotations

import functools
import itertools
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import pufferlib.vector
import torch
from pufferlib.emulation import GymnasiumPufferEnv

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import Contender
from examples.trainers.pufferlib_ppo import CartwheelVecEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

ENV_ID = "CartPole-v1"


class VecEnvRunner:
    """Times ``send`` and ``recv``."""

    note = ""

    def __init__(self, envs: Any, num_envs: int, idle_s: float = 0.0) -> None:
        """Resets ``envs`` and takes them over; ``idle_s`` is a pause after each run."""
        self._envs, self._num_envs, self._idle_s = envs, num_envs, idle_s
        drawn = np.random.default_rng(0).integers(0, 2, (256, num_envs), np.int32)
        self._actions = list(drawn)
        self._step_s = float("inf")
        envs.async_reset(0)
        envs.recv()

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``, at least once; returns environment steps per second."""
        turns = max(1, round(seconds / self._step_s))
        start = time.perf_counter()
        for actions in itertools.islice(itertools.cycle(self._actions), turns):
            self._envs.send(actions)
            self._envs.recv()
        elapsed = time.perf_counter() - start
        self._step_s = elapsed / turns
        time.sleep(self._idle_s)
        return turns * self._num_envs / elapsed

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()


def puffer_env(buf: Any = None, seed: int = 0) -> Any:
    """One environment in PufferLib's wrapper."""
    return GymnasiumPufferEnv(env_creator=functools.partial(gym.make, ENV_ID), buf=buf, seed=seed)


def theirs(name: str, **keywords: Any) -> Contender:
    """One of PufferLib's backends."""

    def build(env_fns: Sequence[EnvFn]) -> VecEnvRunner:
        num_envs = len(env_fns)
        envs = pufferlib.vector.make(puffer_env, num_envs=num_envs, **keywords)
        return VecEnvRunner(envs, num_envs, idle_s=0.6)

    return Contender(name, build)


def ours(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """Environments of cartwheel, as PufferLib's trainer steps them."""
    return Contender(name, lambda fns: VecEnvRunner(CartwheelVecEnv(make(fns)), len(fns)))


SERIAL = theirs("puffer serial", backend=pufferlib.vector.Serial)
PROCESSES = theirs(
    "puffer processes",
    backend=pufferlib.vector.Multiprocessing,
    num_workers=usable_cpus(),
    overwork=True,
)
FEWER = theirs(
    "puffer, a core less",
    backend=pufferlib.vector.Multiprocessing,
    num_workers=max(1, usable_cpus() - 1),
)
INLINE = ours(
    "cartwheel inline",
    lambda fns: cartwheel.VectorEnv(fns, executor="inline", autoreset_mode="same_step"),
)
PROCESS = ours(
    "cartwheel process",
    lambda fns: cartwheel.VectorEnv(fns, executor="process", autoreset_mode="same_step"),
)
NATIVE = ours(
    "cartwheel native",
    lambda fns: cartwheel.make_vec(f"cartwheel/{ENV_ID}", len(fns), autoreset_mode="same_step"),
)
#: Ours resets within a step, and theirs spends a step on it, which counts as one.
CLAIMS = {
    "workers": ("`process`, against a worker for each core", Claim(PROCESS, PROCESSES, 1)),
    "fewer": ("`process`, against a worker less", Claim(PROCESS, FEWER, 1)),
    "serial": ("`inline`, against `Serial`", Claim(INLINE, SERIAL, 0.9)),
    "native": ("native, against a worker less", Claim(NATIVE, FEWER, 10)),
}


def races() -> list[PeerRace]:
    """One for each number of rows."""
    rival = version_of("pufferlib")
    claims = [
        PeerClaim(key, f"{ENV_ID}, {work}", claim, rival) for key, (work, claim) in CLAIMS.items()
    ]
    return [PeerRace(rows, claims, functools.partial(gym.make, ENV_ID)) for rows in (8, 64)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(__doc__, races())
