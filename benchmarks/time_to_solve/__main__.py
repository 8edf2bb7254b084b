"""Wall time until a return is reached, by trainer and vector environment.

CleanRL's PPO, Stable-Baselines3's and the examples of this repository learn four tasks, each with
Gymnasium's ``SyncVectorEnv`` and ``AsyncVectorEnv``, SB3's ``SubprocVecEnv``, EnvPool and
cartwheel, and three seeds. A training ends when the mean return of the last 100 episodes, of all
rows and with drawn actions, reaches the threshold of the task. It has failed at the task's limit of
steps, or after ``--max-seconds``. The clock starts before environments are made and when
everything is imported; ``SubprocVecEnv`` imports torch in each of its processes. One thread is
torch's.

The time of environments is that in which they are made, and the trainer waits for ``reset`` and
``step``. The rest is the learner's: the policy, the update, and the normalization of HalfCheetah's
numbers. Where that is nearly all, no vector environment can save much: the share is in the table
and the chart.

A trainer has the same settings with every vector environment, and other settings than the other
trainers: compare within a trainer. A seed gives other episodes in EnvPool, whose random numbers are
its own, and with Stable-Baselines3's seeds, so steps differ, and a median of three seeds is coarse.

CleanRL's files come from its package of May 2023, unmodified: ``make bench-time-to-solve`` installs
it. They get the vector environment instead of the one that they make, and ``ppo.py`` with the
methods of Gym 0.23, for which it was written.

Every result is kept in the JSON file at once. A run goes on with what is missing there, also after
Ctrl-C, and draws the charts from all. A training that a shorter ``--max-seconds`` ended is missing.
Results do not know the settings in ``tasks.py``: remove those of a task whose settings changed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.time_to_solve.chart import draw
from benchmarks.time_to_solve.tables import filled, table
from benchmarks.time_to_solve.tasks import TASKS, TRAINERS, VECTORS
from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line

ROOT = Path(__file__).parents[2]
#: Task, trainer, vector environment and seed.
Cell: TypeAlias = "tuple[str, str, str, int]"
KEYS = ("task", "trainer", "vector", "seed")
#: Seconds beyond the limit, after which a training is ended from outside: imports, and closing.
GRACE_S = 120


def run(cell: Cell, max_seconds: float) -> dict[str, Any] | None:
    """Runs a training in a process of its own; ``None`` if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.json")
        words = [*map(str, cell), str(max_seconds), str(path)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "benchmarks.time_to_solve.cell", *words]
        # In a session of its own Ctrl-C ends this process alone, which then ends all of that one's.
        process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
        try:
            code = process.wait(max_seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(file=sys.stderr)
        if code != 0:
            why = "did not end" if code is None else f"exited with {code}"
            print(f"{', '.join(map(str, cell))} {why}", file=sys.stderr)
            return None
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def main() -> None:
    """Runs what is missing, prints the table and draws the chart."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.time_to_solve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    for name, choices in (("task", TASKS), ("trainer", TRAINERS), ("vector", VECTORS)):
        add(
            f"--{name}s",
            nargs="+",
            choices=choices,
            default=list(choices),
            metavar=name.upper(),
            help=f"of {' '.join(choices)}",
        )
    add("--seeds", nargs="+", type=positive(int), default=[1, 2, 3], metavar="SEED", help="(1 2 3)")
    add("--max-seconds", type=positive(float), default=900.0, help="of a training (900)")
    add(
        "--json",
        type=Path,
        default=Path("target/time_to_solve.json"),
        metavar="FILE",
        help="the results (%(default)s)",
    )
    add("--charts", type=Path, metavar="FOLDER", help="for a picture of the results of each task")
    add(
        "--page", type=Path, metavar="FILE.md", help="run nothing: write the table of docs/speed.md"
    )
    options = parser.parse_args()
    try:
        results = json.loads(options.json.read_text()) if options.json.exists() else []
    except ValueError as error:
        parser.error(f"{options.json} holds no results of this command: {error}")
    failed: list[Cell] = []
    if options.page:
        try:
            text = filled(options.page.read_text(encoding="utf-8"), results)
        except (OSError, ValueError) as error:
            parser.error(f"argument --page: {options.page}: {error}")
        options.page.write_text(text, encoding="utf-8")
    else:
        failed = run_missing(options, results)
        print(table(results))
    if options.charts:
        options.charts.mkdir(parents=True, exist_ok=True)
        for path in draw(results, options.charts):
            print(path)
    if failed:
        sys.exit("\n".join(["without a result:", *(", ".join(map(str, cell)) for cell in failed)]))


def was_cut_off(result: dict[str, Any], max_seconds: float) -> bool:
    """Whether a shorter limit than this one ended the training."""
    limit: float = result["max_seconds"]
    return limit < max_seconds and result["seconds"] >= limit


def run_missing(options: argparse.Namespace, results: list[dict[str, Any]]) -> list[Cell]:
    """Adds what is missing to the results and to the file; returns the trainings that failed."""
    have = {
        tuple(result[name] for name in KEYS)
        for result in results
        if result["solved"] or not was_cut_off(result, options.max_seconds)
    }
    # Seeds are outermost, so that a run that is cut short has every kind of training.
    wanted = itertools.product(options.seeds, options.tasks, options.trainers, options.vectors)
    cells = [(task, trainer, vector, seed) for seed, task, trainer, vector in wanted]
    missing = [cell for cell in cells if cell not in have]
    failed: list[Cell] = []
    print(machine_line(), flush=True)
    for number, cell in enumerate(missing, 1):
        print(f"{number} of {len(missing)}", file=sys.stderr)
        result = run(cell, options.max_seconds)
        if result is None:
            failed.append(cell)
            continue
        kept = [each for each in results if tuple(each[name] for name in KEYS) != cell]
        results[:] = [*kept, result]
        written = options.json.with_suffix(".part")
        written.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(map(json.dumps, results))
        written.write_text(f"[\n{lines}\n]\n")
        written.replace(options.json)
    return failed


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on with what is missing", file=sys.stderr)
        sys.exit(130)  # what a shell expects of a program that Ctrl-C ended
