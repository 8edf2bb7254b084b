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

Every result is kept in the JSON file at once. A run goes on with what is missing there, and draws
the chart from all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.time_to_solve.chart import draw, median
from benchmarks.time_to_solve.tasks import TASKS, TRAINERS, VECTORS
from cartwheel.bench.command import positive
from cartwheel.bench.machine import machine_line

ROOT = Path(__file__).parents[2]
KEYS = ("task", "trainer", "vector", "seed")
#: Seconds beyond the limit, after which a training is ended from outside: imports, and closing.
GRACE_S = 120


def run(cell: tuple[Any, ...], max_seconds: float) -> dict[str, Any] | None:
    """Runs a training in a process of its own; ``None`` if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.json")
        words = [*map(str, cell), str(max_seconds), str(path)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "benchmarks.time_to_solve.cell", *words]
        try:
            subprocess.run(
                command, check=True, timeout=max_seconds + GRACE_S, env=environment, cwd=folder
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"\n{', '.join(map(str, cell))}: {error}", file=sys.stderr)
            return None
        print(file=sys.stderr)
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def table(results: list[dict[str, Any]]) -> None:
    """Prints a line for each task, trainer and vector environment."""
    print(f"{'':<13}{'':<11}{'':<11}{'solved':>8}{'seconds':>9}{'steps':>11}{'learner':>9}")
    for key in itertools.product(TASKS, TRAINERS, VECTORS):
        of = [result for result in results if tuple(result[name] for name in KEYS[:3]) == key]
        if not of:
            continue
        middle = median(of)
        solved = f"{sum(result['solved'] for result in of)} of {len(of)}"
        more = "" if all(result["solved"] for result in of) else ">"
        print(
            f"{key[0]:<13}{key[1]:<11}{key[2]:<11}{solved:>8}{more:>1}{middle['seconds']:>8.1f}"
            f"{middle['steps']:>11,.0f}"
            f"{1 - middle['environment_seconds'] / middle['seconds']:>9.0%}"
        )


def main() -> None:
    """Runs what is missing, prints the table and draws the chart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--trainers", nargs="+", choices=TRAINERS, default=list(TRAINERS))
    parser.add_argument("--vectors", nargs="+", choices=VECTORS, default=list(VECTORS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument(
        "--max-seconds", type=positive(float), default=900.0, help="of a training (900)"
    )
    parser.add_argument("--json", type=Path, default=Path("target/time_to_solve.json"))
    parser.add_argument("--chart", type=Path, help="a picture of all results, such as a PNG")
    options = parser.parse_args()

    results = json.loads(options.json.read_text()) if options.json.exists() else []
    have = {tuple(result[name] for name in KEYS) for result in results}
    # Seeds are outermost, so that a run that is cut short has every kind of training.
    wanted = [
        (task, trainer, vector, seed)
        for seed, task, trainer, vector in itertools.product(
            options.seeds, options.tasks, options.trainers, options.vectors
        )
    ]
    missing = [cell for cell in wanted if cell not in have]
    print(machine_line())
    for number, cell in enumerate(missing, 1):
        print(f"{number} of {len(missing)}", file=sys.stderr)
        result = run(cell, options.max_seconds)
        if result is not None:
            results.append(result)
            written = options.json.with_suffix(".part")
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(json.dumps(results, indent=1))
            written.replace(options.json)
    table(results)
    if options.chart and results:
        draw(results, options.chart)


if __name__ == "__main__":
    main()
