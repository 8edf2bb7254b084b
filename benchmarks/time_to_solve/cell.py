"""One training in a process of its own, which ``__main__`` starts; it writes its result to a file.

Trainers write files to the current folder, so ``__main__`` gives it a temporary one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks.time_to_solve.score import Score
from benchmarks.time_to_solve.tasks import TASKS
from benchmarks.time_to_solve.trainers import import_all, train


def main() -> None:
    """Trains, and writes what the score has counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("task", "trainer", "vector"):
        parser.add_argument(name)
    parser.add_argument("seed", type=int)
    parser.add_argument("max_seconds", type=float)
    parser.add_argument("result", type=Path)
    options = parser.parse_args()
    task = TASKS[options.task]
    import_all(task)
    label = f"{options.task}, {options.trainer}, {options.vector}, seed {options.seed}"
    score = Score(task.threshold, task.max_steps, options.max_seconds, label)
    train(options.trainer, task, options.vector, options.seed, score)
    result = {
        "task": options.task,
        "trainer": options.trainer,
        "vector": options.vector,
        "seed": options.seed,
        "rows": task.rows[options.trainer],
        "threshold": task.threshold,
        "max_seconds": options.max_seconds,
        "solved": score.is_solved,
        "steps": score.steps,
        "seconds": score.shown_s,
        "environment_seconds": score.environment_s,
        "machine": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }
    options.result.write_text(json.dumps(result))
    sys.stderr.flush()
    os._exit(0)  # without what torch and TensorBoard say when a training is left in its middle


if __name__ == "__main__":
    main()
