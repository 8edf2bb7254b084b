"""Native environments against those of the crate operant-envs, in Rust, on one core.

The crate computes in ``float32`` with sines of two or three terms, so its results are not
Gymnasium's. The program is ``benchmarks/native/operant``, built here with the profile of the
wheel. Its ``rust-toolchain.toml`` names a compiler that can build the crate; rustup installs it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness.claim import options_of
from benchmarks.harness.peers import print_figures
from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "operant"
TARGET = Path(__file__).parents[2] / "target" / "benchmarks"
PEER, ROWS = "operant-envs", 4096
SHOWN = {
    "NextStep": "native, in Rust, `NEXT_STEP`, one core",
    "SameStep": "native, in Rust, `SAME_STEP`, one core",
}
"""Contenders with figures: the plain loop has no interface."""


def build() -> Path:
    """Builds the program and returns its path."""
    command = ["cargo", "build", "--locked", "--release", "--quiet", "--target-dir", str(TARGET)]
    # The crate uses std::simd, which is unstable.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    environment.pop("RUSTUP_TOOLCHAIN", None)
    subprocess.run(command, cwd=FOLDER, env=environment, check=True)
    return TARGET / "release" / "cartwheel-benchmark-operant"


def main() -> None:
    """Prints the rates of all contenders, and their ratios to the crate's; or figures."""
    options = options_of(__doc__, has_figures=True)
    if shutil.which("rustup") is None:
        print("skipped: rustup is not on PATH, so the compiler that operant-envs needs is missing")
        return
    command = [str(build()), str(options.rounds), str(options.seconds / options.rounds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rates: dict[str, dict[str, list[float]]] = {}
    for line in done.stdout.splitlines():
        env_id, name, rounds = line.split(",")
        rates.setdefault(env_id, {})[name] = [float(rate) for rate in rounds.split()]
    if options.json:
        print_figures(list(figures(rates)))
        return
    print(machine_line())
    print(f"{f'{ROWS} environments, one core':28} {'contender':14} {'steps/s':>12} {'ratio':>6}")
    for env_id, contenders in rates.items():
        theirs = median(contenders[PEER])
        for name, numbers in contenders.items():
            rate = median(numbers)
            print(f"{env_id:28} {name:14} {rate:12,.0f} {rate / theirs:6.2f}")


def figures(rates: dict[str, dict[str, list[float]]]) -> Iterator[list[Any]]:
    """Ratios to the rate of the crate, round by round."""
    manifest = (FOLDER / "Cargo.toml").read_text(encoding="utf-8")
    (version,) = re.findall(rf'^{PEER} = "=(.*)"$', manifest, re.MULTILINE)
    rival = f"{PEER} {version}"
    for env_id, contenders in rates.items():
        for name, what in SHOWN.items():
            pairs = zip(contenders[name], contenders[PEER], strict=True)
            ratios = [rate / other for rate, other in pairs]
            key = re.sub(r"\W+", "_", f"{env_id} {name}".lower())
            yield [key, f"{env_id}, {what}", ROWS, ratios, rival]


if __name__ == "__main__":
    main()
