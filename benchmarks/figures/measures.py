"""Everything that the pages give a figure for, measured in one sitting.

A ratio is that of the rates of two contenders in a race, in alternating rounds.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import itertools
import json
import os
import statistics
import subprocess
from typing import TYPE_CHECKING

import gymnasium as gym

from benchmarks.figures.lifetime import CLASSES, Lifetime, lifetime
from benchmarks.figures.pages import AGENTS, HERE, PEERS, ROOT, Figure
from benchmarks.harness.claim import no_env, raced, ratios_of
from benchmarks.harness.workloads import IMAGE, Idle, Timed, rounds_of
from benchmarks.native import cartpole as native
from benchmarks.native import uneven_steps
from benchmarks.native.envpool_interface import HALVES, WHOLE
from benchmarks.process.cartpole import INLINE, PROCESS
from cartwheel.bench.contenders import ASYNC, CEILING, SYNC, cartwheel_native, native_ceiling
from cartwheel.bench.envpool import load_package
from cartwheel.bench.machine import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.bench.contenders import Contender

ELSEWHERE = {
    AGENTS: (".venv-agents", "benchmarks.trainers.several_agents"),
    "mjbatch": (".venv-mjbatch", "benchmarks.native.mjbatch_models"),
    "rlox": (".venv-rlox", "benchmarks.native.rlox_envs"),
    "operant": (".venv", "benchmarks.native.operant_envs"),
    "envpool": (".venv-envpool", "benchmarks.native.newest_envpool"),
    "torchrl": (".venv-torch", "benchmarks.trainers.torchrl_pool"),
    "pufferlib": (".venv-pufferlib", "benchmarks.trainers.pufferlib_envs"),
    "lerobot": (".venv-lerobot", "benchmarks.trainers.lerobot_rollouts"),
}
"""By the first part of names, where figures are measured that need other packages, and the module.

mjbatch asks for one version of MuJoCo, EnvPool and LeRobot for a newer Python, and the others for
versions of their own, or torch.
"""
assert {*ELSEWHERE} == {AGENTS, *PEERS}
LIFETIME_ENVS, LIFETIMES = 512, 3
"""Environments of a lifetime, and how many lifetimes of each class are measured."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    """One contender against another.

    Attributes:
        name: Of its figures; the number of environments is appended.
        work: What is stepped, and how.
        contender: The faster one, mostly.
        against: The other one.
        rival: What the page calls ``against``.
    """

    name: str
    work: str
    contender: Contender
    against: Contender
    rival: str


@dataclasses.dataclass(frozen=True)
class Race:
    """Ratios that are measured together, with one number of environments."""

    num_envs: int
    ratios: list[Ratio]
    env_fn: EnvFn = no_env


def races() -> Iterator[Race]:
    """All races, in the order of the table."""
    cartpole = functools.partial(gym.make, "CartPole-v1")
    python, one_ms = "CartPole-v1 in Python", "1 ms of computation a step"
    infos, images = "ten scalar infos a step", "84×84×4 `uint8` observations"
    to_async = Ratio("process_async", python, PROCESS, ASYNC, "AsyncVectorEnv")
    to_sync = Ratio("process_sync", python, PROCESS, SYNC, "SyncVectorEnv")
    inline = Ratio("inline_sync", f"{python}, `inline`", INLINE, SYNC, "SyncVectorEnv")
    ideal = Ratio("process_ideal", python, PROCESS, CEILING, "the ceiling: bare loops on all cores")
    sync_async = Ratio("sync_async", f"{python}, SyncVectorEnv", SYNC, ASYNC, "AsyncVectorEnv")
    yield Race(1, [inline], cartpole)
    yield Race(8, [to_async, to_sync, inline], cartpole)
    yield Race(32, [to_async, to_sync, sync_async, ideal], cartpole)
    yield Race(128, [to_sync, ideal], cartpole)
    busy = Ratio("busy_ideal", one_ms, PROCESS, CEILING, "the ideal: every core busy")
    yield Race(16, [busy], functools.partial(Timed, 1.0, rounds_a_ms=rounds_of(1e-3)))
    talking = [
        Ratio("infos_async", infos, PROCESS, ASYNC, "AsyncVectorEnv"),
        Ratio("infos_sync", f"{infos}, `inline`", INLINE, SYNC, "SyncVectorEnv"),
    ]
    yield Race(32, talking, functools.partial(Idle, infos=10))
    frames = Ratio("images_async", images, PROCESS, ASYNC, "AsyncVectorEnv")
    for rows in (32, 256):
        yield Race(rows, [frames], functools.partial(Idle, IMAGE))
    yield from native_races()


def native_races() -> Iterator[Race]:
    """Those of environments in Rust and C++."""
    assert native.NUMPY is not None  # its module has asserted that
    version = load_package("envpool").__version__
    work, pool, numpy = "CartPole-v1, native", f"EnvPool {version}", "Gymnasium's NumPy CartPole"
    envpool = Ratio("native_envpool", work, native.NATIVE, native.ENVPOOL, pool)
    to_numpy = Ratio("native_numpy", work, native.NATIVE, native.NUMPY, numpy)
    between = Ratio("numpy_envpool", f"CartPole-v1, {numpy}", native.NUMPY, native.ENVPOOL, pool)
    by_rows = Ratio("native_rows", work, native.NATIVE, native.BY_ROWS, "Rust loops, row by row")
    blocks = Ratio("native_blocks", work, native.NATIVE, native.IN_BLOCKS, "Rust loops, in blocks")
    yield Race(1, [envpool])
    yield Race(64, [envpool])
    yield Race(1024, [envpool, to_numpy, between])
    yield Race(4096, [envpool, to_numpy, by_rows, blocks])
    interface = Ratio("interface", f"{work}, `cartwheel.envpool`", *WHOLE, pool)
    halves = Ratio("halves", f"{work}, `cartwheel.envpool`, batches of half", *HALVES, pool)
    yield Race(1, [interface])
    yield Race(64, [interface, halves])
    yield Race(1024, [interface, halves])
    rounds = uneven_steps.rounds_of(1e-3)
    own = cartwheel_native("Null-v0", work=rounds, work_spread=uneven_steps.SPREAD)
    ideal = native_ceiling("Null-v0", work=rounds, work_spread=uneven_steps.SPREAD)
    uneven = Ratio("uneven_ideal", "1 ms ± 50 % of work a step, native", own, ideal, "the ideal")
    yield Race(16, [uneven])
    yield Race(64, [uneven])


def run(entry: Race, *, seconds: float, rounds: int) -> Iterator[tuple[str, Figure]]:
    """The figures of one race, by their names."""
    measured = raced(entry.env_fn, entry.num_envs, entry.ratios, seconds=seconds, rounds=rounds)
    for ratio in entry.ratios:
        ratios = ratios_of(measured, ratio.contender, ratio.against)
        name = f"{ratio.name}_{entry.num_envs}"
        yield name, figure(ratios, "×", ratio.work, entry.num_envs, ratio.rival)


def measured_elsewhere(name: str, *, seconds: float, rounds: int) -> Iterator[tuple[str, Figure]]:
    """Those of ``name``, measured by the Python of another virtual environment."""
    _, module = ELSEWHERE[name]
    date, processor = dt.datetime.now(dt.timezone.utc).date(), machine()["processor"]
    when = f"{date} on {processor}, load {os.getloadavg()[0]:.1f}"
    command = [str(python_of(name)), "-m", module, "--json"]
    command += ["--seconds", str(seconds), "--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    for key, work, num_envs, ratios, against in json.loads(done.stdout.splitlines()[-1]):
        found = figure(ratios, "×", work, num_envs, against)
        yield f"{name}_{key}_{num_envs}", dataclasses.replace(found, measured=when)


def python_of(name: str) -> Path:
    """The Python of the virtual environment that measures the figures of ``name``."""
    return ROOT / ELSEWHERE[name][0] / "bin/python"


def lifetimes() -> Iterator[tuple[str, Figure]]:
    """The figures of making, stepping and closing many environments, classes in turn."""
    found: dict[str, list[Lifetime]] = {name: [] for name in CLASSES}
    for _ in range(LIFETIMES):
        for name, runs in found.items():
            runs.append(lifetime(name, LIFETIME_ENVS))
    for name, runs in found.items():
        for field in dataclasses.fields(Lifetime):
            what, _, unit = field.name.partition("_")
            numbers = [getattr(each, field.name) for each in runs]
            key = f"{name}_{what}_{LIFETIME_ENVS}"
            work = f"CartPole-v1, {name}: {what}"
            yield key, figure(numbers, unit.replace("mib", "MiB"), work, LIFETIME_ENVS)


def figure(numbers: list[float], unit: str, work: str, num_envs: int, against: str = "") -> Figure:
    """The median and the spread of the values of all rounds, to three digits."""
    ends = (statistics.median(numbers), min(numbers), max(numbers))
    value, low, high = (float(f"{number:.3g}") for number in ends)
    return Figure(value, low, high, unit, work, num_envs, against)


def measure(
    parts: Iterable[str], *, seconds: float, rounds: int, progress: Callable[[str], None]
) -> dict[str, Figure]:
    """Measures; some minutes.

    Args:
        parts: ``HERE`` and those of ``ELSEWHERE``.
        seconds: Time of each contender in a race, all rounds together.
        rounds: In how many slices.
        progress: Called with the name and text of each figure when it is known.

    Raises:
        FileNotFoundError: A virtual environment was not made.
    """
    steps: list[Iterable[tuple[str, Figure]]] = []
    for name in parts:
        if name == HERE:
            steps += [run(entry, seconds=seconds, rounds=rounds) for entry in races()]
            steps.append(lifetimes())
            continue
        if not python_of(name).exists():
            raise FileNotFoundError(
                f"{python_of(name)} is not there: make {ELSEWHERE[name][0]}/.installed"
            )
        steps.append(measured_elsewhere(name, seconds=seconds, rounds=rounds))
    found: dict[str, Figure] = {}
    for name, each in itertools.chain.from_iterable(steps):
        found[name] = each
        progress(f"{name:24} {each.text} {each.unit} ({each.spread})")
    return found
