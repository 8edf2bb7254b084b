"""A million steps: memory does not grow, with any executor, in lockstep or in parts.

The loop keeps its last two batches, like a loop that builds transitions. The memory is that of this
program (``VmRSS``, which counts the shared memory that it touched). It is read after a tenth of the
steps, when everything has reached its size, and at the end.
"""

from __future__ import annotations

import argparse
import gc
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import cartwheel
from benchmarks.harness.workloads import Idle
from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Callable

BOUND_KIB = 1024
NUM_ENVS = 4


class Counting(Idle):
    """Shows the same frame, too large to be copied, and a new info at every step."""

    def __init__(self) -> None:
        """Makes the frame."""
        super().__init__((64, 64))
        self.steps = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns the frame and the number of the step; every fiftieth step ends an episode."""
        self.steps += 1
        return self.frame, 1.0, self.steps % 50 == 0, False, {"steps": self.steps}


def resident_kib() -> int:
    """Memory of this program that is in RAM, in KiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def stepping(envs: Any) -> Callable[[], Any]:
    """Returns a function that steps all rows."""
    actions = np.zeros(envs.num_envs, np.int64)
    envs.reset(seed=0)
    return lambda: envs.step(actions)[0]


def sending(envs: Any) -> Callable[[], Any]:
    """Returns a function that receives a batch and sends its rows again."""
    actions = np.zeros(envs.batch_size, np.int64)
    envs.send_reset(seed=0)

    def step() -> Any:
        observations, *_, infos = envs.recv()
        envs.send(actions, infos["env_index"])
        return observations

    return step


def growth(step: Callable[[], Any], steps: int) -> tuple[int, int]:
    """KiB after a tenth of the steps, and the growth from there to the end."""
    kept: deque[Any] = deque(maxlen=2)
    early = 0
    for number in range(steps):
        kept.append(step())
        if number == steps // 10:
            gc.collect()
            early = resident_kib()
    gc.collect()
    return early, resident_kib() - early


def main() -> None:
    """Prints a line for each executor and way of stepping."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=positive(int), default=1_000_000, help="batches of each")
    steps = parser.parse_args().steps
    print(f"{machine_line()}\n{steps:,} batches each\n")
    print(f"{'executor':10}{'way':12}{'KiB':>10}{'growth':>10}  bound")
    executors: tuple[Literal["inline", "thread", "process", "native"], ...]
    executors = ("inline", "thread", "process", "native")
    for executor in executors:
        for way, batch_size in ((stepping, None), (sending, NUM_ENVS // 2)):
            envs: Any
            if executor == "native":
                size = None if batch_size is None else 256
                envs = cartwheel.NativeVectorEnv("CartPole-v1", 512, batch_size=size)
            else:
                envs = cartwheel.VectorEnv(
                    [Counting] * NUM_ENVS, executor=executor, num_workers=2, batch_size=batch_size
                )
            early, grown = growth(way(envs), steps)
            envs.close()
            outcome = "holds" if grown <= BOUND_KIB else "MISSED"
            name = "step" if way is stepping else "recv, send"
            print(
                f"{executor:10}{name:12}{early:10,}{grown:10,}  ≤ {BOUND_KIB}  {outcome}",
                flush=True,
            )


if __name__ == "__main__":
    main()
