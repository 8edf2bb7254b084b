"""The instructions of a step, of two builds of cartwheel.

Each build is a folder with a ``cartwheel`` in it, as ``pip install --target FOLDER`` makes it. What
the stable ABI costs::

    maturin build --release --out dist/abi3
    maturin build --release --out dist/own --no-default-features
    pip install --no-deps --target target/abi3 dist/abi3/*.whl
    pip install --no-deps --target target/own dist/own/*.whl
    python -m tools.instructions target/own target/abi3

valgrind's callgrind counts. Counts are the same in every run, whatever else the machine does: what
cartwheel decides by the time, such as the number of rows that are stepped together, is decided by a
clock that counts its readings. Steps that wait for other threads or processes have no such count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COUNTED_STEPS = 100
#: Replaces the clock of the C library: time passes by 50 ns with each reading.
CLOCK = """
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static long readings;
    long passed = 50 * __atomic_add_fetch(&readings, 1, __ATOMIC_RELAXED);
    (void)clock;
    now->tv_sec = 1000000000 + passed / 1000000000;
    now->tv_nsec = passed % 1000000000;
    return 0;
}
"""


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


class StillAgents:
    """Three agents that do nothing, with the methods of PettingZoo's parallel environments."""

    possible_agents = ("a", "b", "c")

    def __init__(self) -> None:
        """Makes the only results."""
        self.agents = list(self.possible_agents)
        self._observations = dict.fromkeys(self.agents, np.zeros(4, np.float32))
        self._rewards = dict.fromkeys(self.agents, 1.0)
        self._flags = dict.fromkeys(self.agents, False)

    def observation_space(self, _: str) -> gym.Space[Any]:
        """Returns the only space."""
        return BOX

    def action_space(self, _: str) -> gym.Space[Any]:
        """Returns the only space."""
        return Still.action_space

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the observations."""
        return self._observations, {}

    def step(self, _: Any) -> tuple[Any, ...]:
        """Returns the observations."""
        return self._observations, self._rewards, self._flags, self._flags, {}

    def close(self) -> None:
        """Does nothing."""


BOX = gym.spaces.Box(-1, 1, (4,), np.float32)
NESTED = gym.spaces.Dict(
    {"at": BOX, "parts": gym.spaces.Tuple([BOX, gym.spaces.Discrete(5)]), "image": BOX}
)


def python_rows(make: Callable[[], gym.Env[Any, Any]], rows: int) -> Any:
    """Steps of Python environments in the calling thread."""
    import cartwheel

    envs = cartwheel.VectorEnv([make] * rows, executor="inline")
    envs.reset(seed=1)
    actions = np.arange(rows) % 2
    return lambda: envs.step(actions)


def rows_of_agents(rows: int) -> Any:
    """Steps of environments with several agents in the calling thread."""
    import cartwheel

    envs = cartwheel.ParallelVectorEnv([StillAgents] * rows, executor="inline")
    envs.reset(seed=1)
    actions = {agent: np.arange(rows) % 2 for agent in envs.possible_agents}
    return lambda: envs.step(actions)


def native_rows(rows: int) -> Any:
    """Steps of native environments on one thread."""
    import cartwheel

    envs = cartwheel.NativeVectorEnv("cartwheel/CartPole-v1", rows, num_workers=1)
    envs.reset(seed=1)
    actions = np.arange(rows) % 2
    return lambda: envs.step(actions)


def wrapped_rows(wrapper: str, rows: int, **keywords: Any) -> Any:
    """Steps of native environments in a wrapper of this name, on one thread."""
    import cartwheel
    from cartwheel import wrappers

    envs = cartwheel.NativeVectorEnv("cartwheel/CartPole-v1", rows, num_workers=1, **keywords)
    wrapped = getattr(wrappers, wrapper)(envs)
    wrapped.reset(seed=1)
    actions = np.arange(rows) % 2
    return lambda: wrapped.step(actions)


def pool_rows(rows: int) -> Any:
    """``recv`` and ``send`` of native environments, as a user of EnvPool calls them."""
    from cartwheel import envpool

    pool = envpool.make_gymnasium("CartPole-v1", num_envs=rows, seed=1, num_threads=1)
    pool.async_reset()
    actions = (np.arange(rows) % 2).astype(np.int32)

    def step() -> None:
        infos = pool.recv()[-1]
        pool.send(actions, infos["env_id"])

    return step


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and what makes a function that steps."""
    for rows in (1, 64, 4096):
        yield f"native CartPole, {rows} rows", partial(native_rows, rows)
    made: dict[str, Callable[[], gym.Env[Any, Any]]] = {
        "CartPole": partial(gym.make, "CartPole-v1"),
        "Taxi": partial(gym.make, "Taxi-v4"),  # its infos have an array
        "nothing": partial(Still, BOX),
        "10 infos": partial(Still, BOX, 10),
        "nested": partial(Still, NESTED),
    }
    for name, make in made.items():
        for rows in (1, 64):
            yield f"{name}, {rows} rows", partial(python_rows, make, rows)
    for rows in (1, 64):
        yield f"three agents, {rows} rows", partial(rows_of_agents, rows)
        yield f"envpool, {rows} rows", partial(pool_rows, rows)
        counted = partial(wrapped_rows, "RecordEpisodeStatistics", rows)
        yield f"RecordEpisodeStatistics, {rows} rows", counted
        shown = partial(wrapped_rows, "NormalizeObservation", rows, autoreset_mode="same_step")
        yield f"final observations in NormalizeObservation, {rows} rows", shown


def run(pattern: str) -> None:
    """Steps each case between two marks for valgrind; prints the names of the cases."""
    names = []
    for name, make in cases():
        if not re.search(pattern, name):
            continue
        step = make()
        for _ in range(2):  # the first time to warm up
            for _ in range(COUNTED_STEPS):
                step()
            os.getppid()  # a mark: callgrind writes what was counted, and begins again
        names.append(name)
    print(json.dumps(names))
    sys.stdout.flush()
    os._exit(0)  # without the time that it takes to end every worker


def counted(build: Path, pattern: str) -> dict[str, float]:
    """Instructions of a step for each case."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Path(folder, "clock.so")
        compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(clock)]
        subprocess.run(compiler, input=CLOCK, text=True, check=True)
        command = ["valgrind", "--quiet", "--tool=callgrind", "--dump-before=getppid"]
        command += [f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, __file__, str(build), str(build), "--run", "--only", pattern]
        variables = {"PYTHONPATH": str(build), "PYTHONHASHSEED": "0", "LD_PRELOAD": str(clock)}
        environment = {**os.environ, **variables}
        ran = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        names = json.loads(ran.stdout.splitlines()[-1])
        dumps = [Path(folder, f"out.{2 * number + 2}") for number in range(len(names))]
        totals = [
            re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.M) for dump in dumps
        ]
        counts = [int(total.group(1)) / COUNTED_STEPS for total in totals if total]
        return dict(zip(names, counts, strict=True))


def table(before: dict[str, float], after: dict[str, float]) -> str:
    """The counts of two builds, and by what the second multiplies those of the first."""
    lines = ["| instructions of a step of | before | after | ratio |", "|---|--:|--:|--:|"]
    for name, count in after.items():
        if name in before:
            ratio = count / before[name]
            lines.append(f"| {name} | {before[name]:,.0f} | {count:,.0f} | {ratio:.3f} |")
        else:
            lines.append(f"| {name} | – | {count:,.0f} | – |")
    return "\n".join(lines)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="the folder of a build")
    parser.add_argument("after", type=Path, help="the folder of another build")
    parser.add_argument("--only", default="", help="a pattern of names of cases")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(given.only)
    before, after = (counted(build, given.only) for build in (given.before, given.after))
    print(f"{given.before} and {given.after}:\n\n{table(before, after)}")


if __name__ == "__main__":
    main()
