"""CartPole-v1 as PufferLib's trainer steps it, against PufferLib's own vectorization.

Needs PufferLib 3: ``.venv-pufferlib/bin/python -m benchmarks.trainers.pufferlib_envs``.
Workers of ``pufferlib.vector.Multiprocessing`` wait actively, and so does their caller. So it runs
twice: with a worker for each core, and with a core left for the caller. Its workers go on waiting
for half a second after a run, in which no other contender is timed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from benchmarks.harness.rivals import puffer_stepping, pufferlib_processes, pufferlib_serial
from cartwheel._cartwheel import usable_cpus
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import ACTION_BATCHES
from examples.trainers.pufferlib_ppo import CartwheelVecEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.runner import VectorRunner

ENV_ID = "CartPole-v1"


def ours(name: str, make: Callable[[Sequence[EnvFn]], Any]) -> Contender:
    """Environments of cartwheel, as PufferLib's trainer steps them."""

    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        num_envs = len(env_fns)
        drawn = np.random.default_rng(0).integers(0, 2, (ACTION_BATCHES, num_envs), np.int32)
        return puffer_stepping(CartwheelVecEnv(make(env_fns)), num_envs, list(drawn))

    return Contender(name, build)


SERIAL = Contender("puffer serial", pufferlib_serial)
PROCESSES, FEWER = (
    Contender(name, functools.partial(pufferlib_processes, num_workers=number))
    for name, number in (
        ("puffer processes", usable_cpus()),
        ("puffer, a core less", max(1, usable_cpus() - 1)),
    )
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
