"""The time of a step in parts: microseconds per batch and per row, and the environment's own.

The environment does nothing, so the time is that of cartwheel (and of Python's call of the
environment). Each line is a linear fit over batches of 1 to 64 rows: the time of an empty batch and
the time that each row adds. Times are the fastest of many rounds, since noise only makes a round
slower.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import cartwheel
from benchmarks.harness.workloads import IMAGE, Idle

ROWS = (1, 2, 4, 8, 16, 32, 64)


def fastest(run: Any) -> float:
    """The fastest of many rounds of ``run``, in microseconds."""
    times = []
    for _ in range(30):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def of_batches(keywords: dict[str, Any], **environment: Any) -> tuple[float, float]:
    """Microseconds of an empty batch, and those that each row adds."""
    steps = 50
    times = []
    for rows in ROWS:
        envs = cartwheel.VectorEnv([lambda: Idle(**environment)] * rows, **keywords)
        envs.reset()
        actions = np.zeros(rows, np.int64)

        def run(envs: Any = envs, actions: Any = actions) -> None:
            for _ in range(steps):
                envs.step(actions)

        run()
        times.append(fastest(run) / steps)
        envs.close()
    row, batch = np.polyfit(ROWS, times, 1, w=1 / np.asarray(times))
    return float(batch), float(row)


def of_the_environment(**environment: Any) -> float:
    """Microseconds of one bare call of ``step``."""
    env, action, calls = Idle(**environment), np.int64(0), 2000

    def run() -> None:
        for _ in range(calls):
            env.step(action)

    return fastest(run) / calls


def main() -> None:
    """Prints the table."""
    one = {"executor": "process", "num_workers": 1}
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("inline", {"executor": "inline"}, {}),
        ("inline, ten infos", {"executor": "inline"}, {"infos": 10}),
        ("one worker process", one, {}),
        ("one worker process, ten infos", one, {"infos": 10}),
        ("one worker process, 84×84×4 images", one, {"shape": IMAGE}),
        ("two worker processes", {"executor": "process", "num_workers": 2}, {}),
    ]
    print(f"{'':38}{'µs a batch':>12}{'µs a row':>12}{'of it env.step':>16}")
    for name, keywords, environment in cases:
        batch, row = of_batches(keywords, **environment)
        own = of_the_environment(**environment)
        print(f"{name:38}{batch:12.2f}{row:12.3f}{own:16.3f}")


if __name__ == "__main__":
    main()
