"""Environments of a plugin against the same ones built in.

The plugin is ``benchmarks/native/plugin``, built here in Cargo's default release profile, as an
author's library is: without link-time optimization.
"""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import cartwheel_native

FOLDER = Path(__file__).parent / "plugin"
TARGET = Path(__file__).parents[2] / "target" / "benchmarks"
IDS = ("CartPole-v1", "Taxi-v4")
SETTINGS: tuple[dict[str, Any], ...] = (
    {"autoreset_mode": "NextStep", "num_workers": 1},
    {"autoreset_mode": "NextStep", "num_workers": 2},
    {"autoreset_mode": "SameStep", "num_workers": 1},
)
BOUND = 0.9


def build() -> Path:
    """Builds the plugin and returns its path."""
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(TARGET)]
    subprocess.run([*command, "--manifest-path", str(FOLDER / "Cargo.toml")], check=True)
    return TARGET / "release" / "libcartwheel_benchmark_plugin.so"


def claims(env_id: str, num_envs: int) -> list[Claim]:
    """One claim for each setting that this number of environments can have."""
    made = []
    for setting in SETTINGS:
        if setting["num_workers"] > num_envs:
            continue
        mode, threads = setting["autoreset_mode"], setting["num_workers"]
        built_in = cartwheel_native(env_id, **setting)
        plugin = cartwheel_native(f"benchmark/{env_id}", **setting)
        made.append(
            Claim(
                dataclasses.replace(plugin, name=f"plugin {mode} {threads}"),
                dataclasses.replace(built_in, name=f"built in {mode} {threads}"),
                BOUND,
            )
        )
    return made


if __name__ == "__main__":
    cartwheel.load_plugin(str(build()))
    for env_id in IDS:
        by_number = {number: claims(env_id, number) for number in (1, 64, 1024, 4096)}
        check(f"{env_id} of a plugin", no_env, by_number)
