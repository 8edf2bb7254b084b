"""Waiting costs almost nothing: a pool without work, and one with more workers than cores.

*Idle*: the processor time of the program and its workers during some seconds without steps, as a
share of one core. The measurement starts one second after the last step.

*Crowded*: the processor time of the program and its workers while 8 workers step on 2 cores,
divided by the processor time that the same environments need in one bare loop. Environments compute
for a fixed number of rounds, some 50 µs, so their work is the same in both.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import cartwheel
from benchmarks.harness.workloads import Timed, rounds_of
from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cartwheel._internal.arguments import EnvFn

IDLE_BOUND, CROWDED_BOUND = 0.01, 1.5
CORES, WORKERS = 2, 8
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def scheduled_s(pids: Iterable[int]) -> float:
    """Processor time of all threads of these processes, in seconds, with nanosecond resolution."""
    files = (file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def processor_s(pids: Iterable[int]) -> float:
    """Like :func:`scheduled_s` if the kernel keeps these statistics, otherwise counted in ticks."""
    pids = list(pids)
    if Path("/proc/self/schedstat").exists():
        return scheduled_s(pids)
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(field[11]) + int(field[12]) for field in fields) * TICK_S


def pids_of(envs: Any) -> list[int]:
    """The program and the worker processes."""
    return [os.getpid(), *(process.pid for process in getattr(envs, "processes", []))]


def idle_share(envs: Any, actions: Any, seconds: float) -> float:
    """Processor time per second without steps."""
    envs.reset(seed=0)
    for _ in range(100):
        envs.step(actions)
    time.sleep(1)
    before, start = processor_s(pids_of(envs)), time.perf_counter()
    time.sleep(seconds)
    return (processor_s(pids_of(envs)) - before) / (time.perf_counter() - start)


def work_s(step: Callable[[], Any], pids: list[int], steps: int) -> float:
    """Processor time of a step."""
    before = processor_s(pids)
    for _ in range(steps):
        step()
    return (processor_s(pids) - before) / steps


def crowded_ratios(env_fn: EnvFn, num_envs: int, rounds: int, steps: int) -> list[float]:
    """Processor time of a step, crowded pool divided by bare loop; one ratio for each round."""
    envs = cartwheel.VectorEnv([env_fn] * num_envs, executor="process", num_workers=WORKERS)
    envs.reset(seed=0)
    actions = np.zeros(num_envs, np.int64)
    alone = [env_fn() for _ in range(num_envs)]
    ratios = []
    for _ in range(rounds):
        bare = work_s(lambda: [env.step(0) for env in alone], [os.getpid()], steps)
        ratios.append(work_s(lambda: envs.step(actions), pids_of(envs), steps) / bare)
    envs.close()
    return ratios


def line(name: str, value: str, bound: str, *, holds: bool) -> None:
    """Prints one measurement."""
    print(f"{name:44}{value:>12}  ≤ {bound}  {'holds' if holds else 'MISSED'}", flush=True)


def main() -> None:
    """Prints a line for each executor, then for each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=positive(float), default=4.0, help="idle, each")
    parser.add_argument("--rounds", type=positive(int), default=5, help="of the crowded pool")
    parser.add_argument("--steps", type=positive(int), default=500, help="in each round")
    arguments = parser.parse_args()
    print(f"{machine_line()}\n")
    env_fn = functools.partial(Timed, 0.05, rounds_a_ms=rounds_of(1e-3))
    executors: tuple[Literal["thread", "process", "native"], ...] = ("thread", "process", "native")
    for executor in executors:
        envs: Any
        if executor == "native":
            envs = cartwheel.NativeVectorEnv("CartPole-v1", 1024, num_workers=CORES)
        else:
            envs = cartwheel.VectorEnv([env_fn] * 8, executor=executor, num_workers=CORES)
        share = idle_share(envs, np.zeros(envs.num_envs, np.int64), arguments.seconds)
        envs.close()
        bound = f"{IDLE_BOUND:.0%}"
        line(f"idle, {executor}", f"{share:.3%}", bound, holds=share <= IDLE_BOUND)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for num_envs in (8, 32):
        ratios = crowded_ratios(env_fn, num_envs, arguments.rounds, arguments.steps)
        ratio = statistics.median(ratios)
        name = f"{WORKERS} workers on {CORES} cores, {num_envs} environments"
        line(name, f"{ratio:.2f} ×", f"{CROWDED_BOUND} ×", holds=ratio <= CROWDED_BOUND)


if __name__ == "__main__":
    main()
