"""MiniGrid of the plugin against the package under Gymnasium's vector environments, and others.

Gymnasium's have 64 environments, ``AsyncVectorEnv`` without shared memory, which cannot hold
missions; the plugin, EnvPool and NAVIX have 1,024. The plugin is built here in its release profile.

EnvPool's port has other random numbers. NAVIX is another environment after MiniGrid, in JAX on the
CPU, so its rate is not one of MiniGrid; ``benchmarks/harness/navix_envs.py`` says how it steps.
It only takes part in DoorKey-8x8, and has no BabyAI.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import statistics
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector.async_vector_env import AsyncVectorEnv
from gymnasium.vector.sync_vector_env import SyncVectorEnv

import cartwheel
from benchmarks.harness.navix_envs import LEVEL, NavixRunner
from cartwheel.bench.command import positive
from cartwheel.bench.contenders import cartwheel_native, cartwheel_with, envpool
from cartwheel.bench.envpool import why_not_envpool
from cartwheel.bench.machine import machine_line
from cartwheel.bench.runner import Runner, VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[2] / "plugins" / "minigrid"
TARGET = Path(__file__).parents[2] / "target" / "benchmarks"
NAVIX_PYTHON = Path(__file__).parents[2] / ".venv-navix" / "bin" / "python"
IDS = ("MiniGrid-DoorKey-8x8-v0", "BabyAI-BossLevel-v0")
FEW, MANY = 64, 1024
#: The least ratios of the plugin's rate to those of others.
BOUNDS = {"gymnasium async": 200.0, "envpool": 2.0}


def build() -> Path:
    """Builds the plugin and returns its path."""
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(TARGET)]
    subprocess.run([*command, "--manifest-path", str(FOLDER / "Cargo.toml")], check=True)
    return TARGET / "release" / "libcartwheel_minigrid.so"


def runner(envs: Any) -> VectorRunner:
    """Returns a runner of Gymnasium's vector environments."""
    envs.reset(seed=0)
    return VectorRunner(envs, sample_actions(envs.action_space))


def contenders(env_id: str) -> dict[str, Callable[[], Runner]]:
    """Returns functions that make the contenders, by their names."""
    make = functools.partial(gym.make, env_id, disable_env_checker=True)
    few, many = [make] * FEW, [make] * MANY
    found: dict[str, Callable[[], Runner]] = {
        "gymnasium async": lambda: runner(AsyncVectorEnv(few, shared_memory=False)),
        "cartwheel process": lambda: cartwheel_with("process").build(few),
        "gymnasium sync": lambda: runner(SyncVectorEnv(few)),
        "cartwheel native": lambda: cartwheel_native(f"cartwheel_minigrid/{env_id}").build(many),
    }
    if why_not_envpool(env_id) is None:
        found["envpool"] = lambda: envpool(env_id).build(many)
    if NAVIX_PYTHON.exists() and "DoorKey-8x8" in env_id:
        found["navix"] = lambda: NavixRunner(str(NAVIX_PYTHON), MANY)
    return found


def rates(env_id: str, seconds: float, rounds: int) -> dict[str, float]:
    """Returns the median of the steps per second of each contender, which take turns."""
    made = {name: make() for name, make in contenders(env_id).items()}
    found: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(rounds):
        for name, one in made.items():
            found[name].append(one.run(seconds))
    for one in made.values():
        one.close()
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    """Prints the rates and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=positive(float), default=1.0, help="of a round (1)")
    parser.add_argument("--rounds", type=positive(int), default=5, help="(5)")
    arguments = parser.parse_args()
    try:
        importlib.import_module("minigrid")  # registers its ids
    except ImportError:
        print("without minigrid: `make bench-minigrid` has an environment with it")
        return
    cartwheel.load_plugin(str(build()))
    print(machine_line())
    for env_id in IDS:
        with contextlib.redirect_stdout(io.StringIO()):  # BabyAI prints levels that it rejects
            measured = rates(env_id, arguments.seconds, arguments.rounds)
        own = measured.pop("cartwheel native")
        print(f"{env_id}: {own:,.0f} steps/s of {MANY} rows")
        for name, rate in measured.items():
            bound = BOUNDS.get(name)
            holds = "" if bound is None else f"  ≥ {bound:g}  {own / rate >= bound}"
            print(f"  {name:18} {rate:11,.0f} steps/s   {own / rate:8.1f} ×{holds}", flush=True)
    if NAVIX_PYTHON.exists():
        print(f"navix: {LEVEL}, another environment than MiniGrid's")
    else:
        print("without NAVIX: `make bench-minigrid` has an environment with it")


if __name__ == "__main__":
    main()
