"""Counts the instructions of a step at two commits; the exit status is 1 if a step needs more.

    python -m tools.compare BASE [COMMIT] [--at-most RATIO] [--only PATTERN]

Builds both from their files as git has them, below ``target/compare``. The counts, and the cases,
are those of :mod:`tools.instructions`: the same in every run, also on a machine that others use.
They say nothing of waits, caches and branches; `benchmarks/` measures time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from release.command import ROOT, output_of
from tools.instructions import counted, table

FOLDER = ROOT / "target" / "compare"
#: Tolerated growth of a step: hashes of addresses and the like differ.
AT_MOST = 1.01


def build(commit: str) -> Path:
    """A folder with the cartwheel of a commit, as ``pip install --target`` makes it."""
    print(f"==> {commit}", file=sys.stderr, flush=True)
    source, installed = (FOLDER / commit / name for name in ("source", "installed"))
    for folder in (source, installed):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    # With the times of commits, cargo would take the build of one commit for that of another.
    subprocess.run(["tar", "--extract", "--touch"], cwd=source, input=archive, check=True)
    wheels = FOLDER / commit / "wheels"
    tools = Path(sys.executable).parent
    command: list[str | Path] = [tools / "maturin", "build", "--quiet", "--release", "--locked"]
    command += ["--out", wheels, "--interpreter", sys.executable]
    # One folder for both: what they depend on is compiled once.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(FOLDER / "cargo")}
    subprocess.run(command, cwd=source, env=environment, check=True, stdout=sys.stderr)
    (wheel,) = wheels.glob("*.whl")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*command, installed, wheel], check=True)
    return installed


def worse(before: dict[str, float], after: dict[str, float], at_most: float) -> list[str]:
    """The cases of both whose ratio is above `at_most`."""
    return [name for name in before if after.get(name, 0) > at_most * before[name]]


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", help="the commit before")
    parser.add_argument("commit", nargs="?", default="HEAD", help="the commit after (HEAD)")
    parser.add_argument("--at-most", type=float, default=AT_MOST, help=f"a ratio ({AT_MOST})")
    parser.add_argument("--only", default="", help="a pattern of names of cases")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("it counts with valgrind, which is not on PATH")
    commits = [
        output_of("git", "rev-parse", "--verify", "--short=12", f"{name}^{{commit}}")
        for name in (given.base, given.commit)
    ]
    before, after = (counted(build(commit), given.only) for commit in commits)
    print(f"{commits[0]} and {commits[1]}:\n\n{table(before, after)}")
    if slower := worse(before, after, given.at_most):
        raise SystemExit(f"more than {given.at_most} times the instructions: {', '.join(slower)}")


if __name__ == "__main__":
    main()
