"""Kernel costs of a batch: calls of ``futex`` and context switches, with 2 to 64 processes.

The caller pauses before each batch for longer than workers poll, so every worker sleeps and has to
be woken: the most that wake-ups can cost. Calls are counted by ``strace``, those of the calling
thread and those of all processes, as the difference between a long and a short run, so starting and
closing do not count. Context switches are counted by the kernel, without ``strace``. Calls do not
depend on the load of the machine; switches do.

The bound: for each batch the calling thread makes one call to wait, and one for each 32 workers, to
wake them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import cartwheel
from benchmarks.harness.workloads import Idle
from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line

WORKERS = (2, 4, 8, 16, 32, 64)
NUM_ENVS = 64
SHORT = 20
"""The first batches, which are not counted."""


def switches(pid: int) -> int:
    """Context switches of the main thread of a process so far."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return sum(int(number) for number in re.findall(r"ctxt_switches:\s*(\d+)", text))


def step(workers: int, batches: int, pause_s: float) -> list[int]:
    """Steps; returns the context switches of this thread and of all workers together."""
    envs = cartwheel.VectorEnv([Idle] * NUM_ENVS, executor="process", num_workers=workers)
    envs.reset(seed=0)
    actions = np.zeros(NUM_ENVS, np.int64)

    def counts() -> list[int]:
        return [switches(os.getpid()), sum(switches(process.pid) for process in envs.processes)]

    def run(batches: int) -> None:
        for _ in range(batches):
            time.sleep(pause_s)
            envs.step(actions)

    run(SHORT)
    before = counts()
    run(batches - SHORT)
    grown = [now - then for now, then in zip(counts(), before, strict=True)]
    envs.close()
    return grown


def counted(workers: int, batches: int, pause_s: float) -> list[float]:
    """Futex calls of the calling thread and of all, and its and the workers' context switches.

    For each batch after the first ones.
    """
    more = batches - SHORT
    short, long = (futex_calls(workers, number, pause_s) for number in (SHORT, batches))
    finished = subprocess.run(
        run(workers, batches, pause_s), check=True, capture_output=True, text=True
    )
    calls = [after - before for before, after in zip(short, long, strict=True)]
    return [count / more for count in (*calls, *map(int, finished.stdout.split()))]


def run(workers: int, batches: int, pause_s: float) -> list[str]:
    """The command that steps."""
    module = [sys.executable, "-m", "benchmarks.process.wake_ups"]
    return [*module, "--step", str(workers), str(batches), str(pause_s)]


def futex_calls(workers: int, batches: int, pause_s: float) -> list[int]:
    """Futex calls of the calling thread, and of all threads and processes, in a whole run."""
    calls = []
    with tempfile.TemporaryDirectory() as folder:
        for follow in ([], ["-f"]):
            file = Path(folder) / "calls"
            trace = ["strace", *follow, "-c", "-e", "trace=futex", "-o", str(file)]
            command = [*trace, *run(workers, batches, pause_s)]
            subprocess.run(command, check=True, capture_output=True)
            line = re.search(r"^.* futex$", file.read_text(encoding="utf-8"), re.MULTILINE)
            calls.append(int(line[0].split()[3]) if line else 0)
    return calls


def main() -> None:
    """Prints a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=positive(int), default=200, help="of each number")
    parser.add_argument("--pause", type=positive(float), default=0.01, help="seconds (%(default)s)")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        workers, batches, pause_s = arguments.step
        print(*step(int(workers), int(batches), float(pause_s)))
        return
    if shutil.which("strace") is None:
        print("skipped: strace, which counts the calls, is not on PATH")
        return
    batches = arguments.batches
    print(f"{machine_line()}\n{NUM_ENVS} environments that do nothing, {batches} batches each\n")
    print(f"{'':7}  {'futex calls a batch':>24}  {'context switches a batch':>26}")
    print(f"{'workers':7}  {'caller':>8}{'all':>8}  bound  {'caller':>8}{'workers':>12}")
    for workers in WORKERS:
        caller, everyone, own, others = counted(workers, SHORT + batches, arguments.pause)
        bound = 1 + -(-workers // 32)
        outcome = "holds" if caller <= bound + 0.5 else "MISSED"
        print(
            f"{workers:7}  {caller:8.2f}{everyone:8.2f}  ≤ {bound}    {own:8.2f}{others:12.2f}"
            f"  {outcome}",
            flush=True,
        )


if __name__ == "__main__":
    main()
