"""Time and memory that many environments in Python take: to make, to step, to close.

Each is measured in a program of its own, so that nothing is there before.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector.async_vector_env import AsyncVectorEnv

import cartwheel
from benchmarks.scaling.footprint import pss

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from benchmarks.figures.lifetime import report; report(*sys.argv[1:])"
"""Given with ``-c``: processes that are spawned would run a module again."""
CLASSES: dict[str, Callable[[Any], Any]] = {
    "cartwheel": cartwheel.VectorEnv,
    "async": AsyncVectorEnv,
}
STEPS = 20
"""Timed steps, after as many that warm up."""


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """The costs of one vector environment.

    Attributes:
        make_s: Seconds of the constructor and the first reset.
        step_ms: Milliseconds of a step of all rows.
        close_s: Seconds of ``close``.
        memory_mib: Growth of the memory of the program, with that of its workers. Pages that
            processes share are divided among them.
    """

    make_s: float
    step_ms: float
    close_s: float
    memory_mib: float


def lifetime(name: str, num_envs: int) -> Lifetime:
    """Makes, steps and closes CartPoles in a new program."""
    command = [sys.executable, "-c", PROGRAM, name, str(num_envs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return Lifetime(**json.loads(done.stdout.splitlines()[-1]))


def report(name: str, num_envs: str) -> None:
    """The program: prints what it took."""
    env_fns = [functools.partial(gym.make, "CartPole-v1")] * int(num_envs)
    before = memory([])
    start = time.perf_counter()
    envs = CLASSES[name](env_fns)
    envs.reset(seed=0)
    make_s = time.perf_counter() - start
    actions = envs.action_space.sample()
    for _ in range(STEPS):
        envs.step(actions)
    start = time.perf_counter()
    for _ in range(STEPS):
        envs.step(actions)
    step_ms = 1000 * (time.perf_counter() - start) / STEPS
    grown = memory([process.pid for process in envs.processes]) - before
    start = time.perf_counter()
    envs.close()
    close_s = time.perf_counter() - start
    print(json.dumps(dataclasses.asdict(Lifetime(make_s, step_ms, close_s, grown / 2**20))))


def memory(workers: list[int]) -> int:
    """Memory of this program and of its workers, in bytes."""
    total = pss([os.getpid(), *workers])
    if total is None:
        raise OSError("this system does not say how much memory a process has: /proc is missing")
    return total
