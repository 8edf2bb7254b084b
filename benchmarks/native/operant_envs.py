"""Native environments against those of the crate operant-envs, in Rust, on one core.

The crate computes in ``float32`` with sines of two or three terms, so its results are not
Gymnasium's. The program is ``benchmarks/native/operant``, built here with the profile of the
wheel. Its ``rust-toolchain.toml`` names a compiler that can build the crate; rustup installs it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from pathlib import Path
from statistics import median

from cartwheel.bench.machine import machine_line

FOLDER = Path(__file__).parent / "operant"
TARGET = Path(__file__).parents[2] / "target" / "benchmarks"
PEER = "operant-envs"


def build() -> Path:
    """Builds the program and returns its path."""
    command = ["cargo", "build", "--locked", "--release", "--quiet", "--target-dir", str(TARGET)]
    # The crate uses std::simd, which is unstable.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    environment.pop("RUSTUP_TOOLCHAIN", None)
    subprocess.run(command, cwd=FOLDER, env=environment, check=True)
    return TARGET / "release" / "cartwheel-benchmark-operant"


def main() -> None:
    """Prints the rates of all contenders, and their ratios to the crate's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round (0.5)")
    parser.add_argument("--rounds", type=int, default=7, help="of each contender (7)")
    arguments = parser.parse_args()
    if shutil.which("rustup") is None:
        print("skipped: rustup is not on PATH, so the compiler that operant-envs needs is missing")
        return
    command = [str(build()), str(arguments.rounds), str(arguments.seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rates: dict[str, dict[str, float]] = {}
    for line in done.stdout.splitlines():
        env_id, name, rounds = line.split(",")
        rates.setdefault(env_id, {})[name] = median(map(float, rounds.split()))
    print(machine_line())
    print(f"{'4096 environments, one core':28} {'contender':14} {'steps/s':>12} {'ratio':>6}")
    for env_id, contenders in rates.items():
        for name, rate in contenders.items():
            print(f"{env_id:28} {name:14} {rate:12,.0f} {rate / contenders[PEER]:6.2f}")


if __name__ == "__main__":
    main()
