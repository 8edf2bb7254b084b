"""The effect of the missing GIL: the same steps on several Pythons, in processes that take turns.

    python -m tools.without_gil python3.14 python3.14t

Each Python has cartwheel installed. Rows of Python environments (Gymnasium's CartPole, and one that
computes for tens of microseconds) are stepped by the caller, by two threads and by two processes.
Native rows are stepped by one and by two threads of the program, each with its own vector
environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLICES, SLICE_S = 10, 0.2


class Computing(gym.Env[Any, Any]):
    """Computes in pure Python for tens of microseconds a step."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)
    rounds = 2000

    def __init__(self) -> None:
        """Makes the only observation."""
        self._observation = np.zeros(4, np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the observation."""
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Computes, and returns the observation."""
        value = int(action)
        for number in range(self.rounds):
            # A larger constant would be one object, whose references both threads would count:
            # CPython 3.14t makes only small numbers immortal.
            value = (value * 31 + number) & 0xFF
        return self._observation, float(value), False, False, {}


def rows_of_python(make: Callable[[], gym.Env[Any, Any]], executor: Any) -> float:
    """Steps of a row per second, in the fastest slice."""
    envs = cartwheel.VectorEnv([make] * 16, executor=executor, num_workers=2)
    envs.reset(seed=1)
    actions = np.arange(16) % 2
    rate = fastest(lambda: envs.step(actions)) * 16
    envs.close()
    return rate


def native_rows(num_threads: int) -> float:
    """Steps of a row per second of all threads together, in the fastest slice."""
    vectors = [
        cartwheel.NativeVectorEnv("cartwheel/CartPole-v1", 64, num_workers=1)
        for _ in range(num_threads)
    ]
    actions = np.arange(64) % 2
    rates = []

    def step(envs: Any) -> None:
        rates.append(fastest(lambda: envs.step(actions)) * 64)

    for envs in vectors:
        envs.reset(seed=1)
    threads = [threading.Thread(target=step, args=(envs,)) for envs in vectors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for envs in vectors:
        envs.close()
    return sum(rates)


def fastest(step: Callable[[], Any]) -> float:
    """Calls per second, in the fastest of some slices."""
    best = 0.0
    for _ in range(SLICES):
        calls, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < SLICE_S:
            step()
            calls += 1
        best = max(best, calls / spent)
    return best


def cart_pole() -> gym.Env[Any, Any]:
    """As Gymnasium makes it, with its wrappers."""
    return gym.make("CartPole-v1")


def cases() -> Iterator[tuple[str, Callable[[], float]]]:
    """Names, and what measures."""
    for name, make in (("CartPole", cart_pole), ("pure Python", Computing)):
        for executor in ("inline", "thread", "process"):
            yield f"{name}, {executor}", partial(rows_of_python, make, executor)
    for num_threads in (1, 2):
        yield f"native, stepped by {num_threads}", partial(native_rows, num_threads)


def main() -> None:
    """Prints a table of steps of a row per second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="+", help="interpreters; each column is for one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps({name: measure() for name, measure in cases()}))
        return
    best: list[dict[str, float]] = [{} for _ in given.pythons]
    for _ in range(given.rounds):
        for python, rates in zip(given.pythons, best, strict=True):
            told = [python, "-m", "tools.without_gil", "--run", python]
            ran = subprocess.run(told, stdout=subprocess.PIPE, text=True, check=True)
            for name, rate in json.loads(ran.stdout.splitlines()[-1]).items():
                rates[name] = max(rate, rates.get(name, 0.0))
    print(f"| steps/s | {' | '.join(given.pythons)} | last by first |")
    print("|---" + "|--:" * (len(best) + 1) + "|")
    for name, first in best[0].items():
        cells = " | ".join(f"{rates[name]:,.0f}" for rates in best)
        print(f"| {name} | {cells} | {best[-1][name] / first:.2f} |")


if __name__ == "__main__":
    main()
