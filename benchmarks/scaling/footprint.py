"""Time and memory that environments take until they are reset.

Both are measured in a program of its own, so that nothing is there before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector.async_vector_env import AsyncVectorEnv

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from benchmarks.scaling.footprint import report; report(sys.argv[1])"
"""Given with ``-c``: with a module, processes that are spawned would import cartwheel again."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The environments to make.

    Attributes:
        contender: ``"cartwheel native"``, ``"cartwheel process"`` or ``"gymnasium async"``.
        env_id: A registered id.
        num_envs: How many environments.
        start_method: Of worker processes; ``None`` for the default.
        num_workers: Of cartwheel; ``None`` for the default.
    """

    contender: str
    env_id: str
    num_envs: int
    start_method: str | None = None
    num_workers: int | None = None

    def make(self) -> Any:
        """Makes the vector environment."""
        if self.contender == "cartwheel native":
            return cartwheel.NativeVectorEnv(self.env_id, self.num_envs)
        env_fns = [functools.partial(gym.make, self.env_id)] * self.num_envs
        if self.contender == "gymnasium async":
            return AsyncVectorEnv(env_fns, context=self.start_method)
        return cartwheel.VectorEnv(
            env_fns, executor="process", context=self.start_method, num_workers=self.num_workers
        )


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Time and memory of these environments.

    Attributes:
        start_s: Seconds from the call of the constructor to the end of the first reset.
        program_bytes: Memory of the program itself. Pages that processes share are divided among
            them. ``None`` where the system does not say.
        workers_bytes: The same of all worker processes together.
    """

    start_s: float
    program_bytes: int | None
    workers_bytes: int | None

    @property
    def total_bytes(self) -> int | None:
        """Memory of all processes."""
        if self.program_bytes is None or self.workers_bytes is None:
            return None
        return self.program_bytes + self.workers_bytes


def footprint(wanted: Wanted, limit_s: float) -> Footprint | None:
    """Measures in a new program; ``None`` if that takes longer than ``limit_s`` seconds."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(dataclasses.asdict(wanted))]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    ) as program:
        try:
            output, _ = program.communicate(timeout=limit_s)
        except BaseException as stopped:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # its workers too
            if isinstance(stopped, subprocess.TimeoutExpired):
                return None
            raise
    if program.returncode:
        raise RuntimeError(f"{wanted} ended with status {program.returncode}")
    return Footprint(**json.loads(output.splitlines()[-1]))


def report(wanted: str) -> None:
    """The program: makes environments, resets and steps them, and prints what that took."""
    start = time.perf_counter()
    envs = Wanted(**json.loads(wanted)).make()
    envs.reset(seed=0)
    start_s = time.perf_counter() - start
    envs.step(envs.action_space.sample())
    workers = [process.pid for process in getattr(envs, "processes", [])]
    print(json.dumps(dataclasses.asdict(Footprint(start_s, pss([os.getpid()]), pss(workers)))))
    sys.stdout.flush()
    envs.close()


def pss(pids: Iterable[int | None]) -> int | None:
    """Proportional set size of these processes, in bytes; ``None`` where there is no such file."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            return None
        total += 1024 * sum(map(int, re.findall(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE)))
    return total
