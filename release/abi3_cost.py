"""What the stable ABI costs: two builds of cartwheel beside each other, step by step.

Each build is a folder with a ``cartwheel`` in it, as ``pip install --target FOLDER`` makes it.
Both are run by this Python, in processes that take turns; the fastest slice of each process
counts::

    maturin build --release --out dist/abi3
    maturin build --release --out dist/own --no-default-features
    pip install --no-deps --target target/abi3 dist/abi3/*.whl
    pip install --no-deps --target target/own dist/own/*.whl
    python -m release.abi3_cost target/own target/abi3

``--instructions`` counts the instructions of a step instead, with valgrind's callgrind. Counts are
the same in every run, whatever else the machine does; steps that wait for other threads or
processes have no such count, and are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLICES, SLICE_S = 8, 0.1
COUNTED_STEPS = 100


class Still(gym.Env[Any, Any]):
    """Does nothing, so that a step is the work of cartwheel alone."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, observation_space: gym.Space[Any], infos: int = 0) -> None:
        """Draws the only observation; a step has this many infos."""
        self.observation_space = observation_space
        self._observation = observation_space.sample()
        self._infos = [f"key_{number}" for number in range(infos)]

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the observation."""
        return self._observation, {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns the observation, and floats as infos."""
        return self._observation, 1.0, False, False, dict.fromkeys(self._infos, 0.5)


BOX = gym.spaces.Box(-1, 1, (4,), np.float32)
NESTED = gym.spaces.Dict(
    {"at": BOX, "parts": gym.spaces.Tuple([BOX, gym.spaces.Discrete(5)]), "image": BOX}
)


def python_rows(make: Callable[[], gym.Env[Any, Any]], rows: int, executor: Any) -> Any:
    """Steps of Python environments."""
    import cartwheel

    envs = cartwheel.VectorEnv([make] * rows, executor=executor)
    envs.reset(seed=1)
    actions = np.arange(rows) % 2
    return lambda: envs.step(actions)


def native_rows(rows: int) -> Any:
    """Steps of native environments on one thread."""
    import cartwheel

    envs = cartwheel.NativeVectorEnv("cartwheel/CartPole-v1", rows, num_workers=1)
    envs.reset(seed=1)
    actions = np.arange(rows) % 2
    return lambda: envs.step(actions)


def pool_rows(rows: int, batch: int) -> Any:
    """``recv`` and ``send`` of native environments, as a user of EnvPool calls them."""
    from cartwheel import envpool

    pool = envpool.make_gymnasium(
        "CartPole-v1", num_envs=rows, batch_size=batch, seed=1, num_threads=1
    )
    pool.async_reset()
    actions = (np.arange(batch) % 2).astype(np.int32)

    def step() -> None:
        infos = pool.recv()[-1]
        pool.send(actions, infos["env_id"])

    return step


def cart_pole() -> gym.Env[Any, Any]:
    """As Gymnasium makes it, with its wrappers."""
    return gym.make("CartPole-v1")


def cases() -> Iterator[tuple[str, bool, Callable[[], Any]]]:
    """Names, whether instructions can be counted, and what makes a function that steps."""
    for rows in (1, 64, 4096):
        yield f"native CartPole, {rows} rows", True, partial(native_rows, rows)
    for executor in ("inline", "thread", "process"):
        for rows in (1, 64, 256):
            make = partial(python_rows, cart_pole, rows, executor)
            yield f"CartPole, {executor}, {rows} rows", executor == "inline", make
    for name, space, infos in (("nothing", BOX, 0), ("10 infos", BOX, 10), ("nested", NESTED, 0)):
        for rows in (1, 64):
            make = partial(python_rows, partial(Still, space, infos), rows, "inline")
            yield f"{name}, inline, {rows} rows", True, make
    yield "Taxi, inline, 64 rows", True, partial(python_rows, taxi, 64, "inline")
    for rows, batch in ((1, 1), (64, 64), (64, 32)):
        yield f"envpool, {batch} of {rows} rows", batch == rows, partial(pool_rows, rows, batch)


def taxi() -> gym.Env[Any, Any]:
    """Its infos have an array and a float."""
    return gym.make("Taxi-v4")


def fastest(step: Callable[[], Any]) -> float:
    """Microseconds of a step, in the fastest of some slices."""
    best = float("inf")
    for _ in range(SLICES):
        steps, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < SLICE_S:
            step()
            steps += 1
        best = min(best, spent / steps)
    return best * 1e6


def run(pattern: str, *, counting: bool) -> None:
    """Times each case, or steps it between two marks for valgrind; prints what was timed."""
    timed = {}
    for name, countable, make in cases():
        if not re.search(pattern, name) or (counting and not countable):
            continue
        step = make()
        if counting:
            for _ in range(COUNTED_STEPS):
                step()
            os.getppid()  # a mark: callgrind writes what was counted, and begins again
            for _ in range(COUNTED_STEPS):
                step()
            os.getppid()
            timed[name] = 0.0
        else:
            timed[name] = fastest(step)
    print(json.dumps(timed))
    sys.stdout.flush()
    os._exit(0)  # without the time that it takes to end every worker


def started(build: Path, pattern: str, *, counting: bool, under: list[str]) -> dict[str, float]:
    """The results of one process with this build."""
    arguments = [*under, sys.executable, __file__, str(build), "--run", "--only", pattern]
    if counting:
        arguments.append("--instructions")
    environment = {**os.environ, "PYTHONPATH": str(build), "PYTHONHASHSEED": "0"}
    ran = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    results: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return results


def counted(build: Path, pattern: str) -> dict[str, float]:
    """Instructions of a step for each case."""
    with tempfile.TemporaryDirectory() as folder:
        under = [
            "valgrind",
            "--quiet",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/out",
            "--dump-before=getppid",
        ]
        names = started(build, pattern, counting=True, under=under)
        dumps = [Path(folder, f"out.{number + 1}") for number in range(2 * len(names))]
        totals = [
            re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.M) for dump in dumps
        ]
        counts = [int(total.group(1)) / COUNTED_STEPS for total in totals[1::2] if total]
        return dict(zip(names, counts, strict=True))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("builds", nargs="+", type=Path, help="the build for one Python, then abi3")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each build (5)")
    parser.add_argument("--only", default="", help="a pattern of names of cases")
    parser.add_argument("--instructions", action="store_true", help="count them, with valgrind")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(given.only, counting=given.instructions)
    own, stable = given.builds
    if given.instructions:
        rounds = [(counted(own, given.only), counted(stable, given.only))]
    else:
        rounds = []
        for _ in range(given.rounds):
            pair = [started(build, given.only, counting=False, under=[]) for build in (own, stable)]
            rounds.append((pair[0], pair[1]))
    unit = "instructions" if given.instructions else "µs"
    print(f"| a step of | {own.name}, {unit} | {stable.name}, {unit} | ratio | each round's |")
    print("|---|--:|--:|--:|---|")
    for name in rounds[0][0]:
        first, second = ([pair[at][name] for pair in rounds] for at in (0, 1))
        ratios = [b / a for a, b in zip(first, second, strict=True)]
        each = " ".join(f"{ratio:.3f}" for ratio in ratios)
        print(
            f"| {name} | {min(first):,.2f} | {min(second):,.2f} "
            f"| {statistics.median(ratios):.3f} | {each} |"
        )


if __name__ == "__main__":
    main()
