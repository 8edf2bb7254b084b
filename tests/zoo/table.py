"""Compares every real environment in every mode, and writes a table of the outcomes.

    python -m tests.zoo.table [--write docs/environments.md] [--only WORDS] [--share 1.0]

Each environment runs in its own program (``tests/zoo/cells.py``). The table goes to standard
output, or between the two markers in the file that ``--write`` names.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cartwheel.bench.machine import machine_line
from tests.zoo.environments import CASES, PLAYERS, Players

ROOT = Path(__file__).parents[2]
LIMIT_S = 900
BEGIN = "<!-- The table: written by `make zoo`, not by hand. -->"
END = "<!-- The end of the table. -->"
HEADER = ("package", "environment", "NEXT_STEP", "SAME_STEP", "DISABLED", "`render`", "to know")
MODES = ("NextStep", "SameStep", "Disabled", "frames")
PACKAGES = (
    "mujoco",
    "ale-py",
    "minigrid",
    "gymnasium-robotics",
    "highway-env",
    "box2d",
    "flappy-bird-gymnasium",
    "vizdoom",
    "shimmy",
    "dm-control",
    "metaworld",
    "pettingzoo",
)


def run(case, share):
    """The outcomes of a case by cell, from a program of its own."""
    with tempfile.TemporaryDirectory() as folder:  # some packages write into the working directory
        try:
            program = subprocess.run(
                [sys.executable, "-m", "tests.zoo.cells", str(case), "--share", str(share)],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            output, ending = (error.stdout or b"").decode(), f"not done after {LIMIT_S} s"
        else:
            lines = program.stderr.strip().splitlines() or [""]
            output, ending = program.stdout, f"exit code {program.returncode}: {lines[-1]}"
    told = [json.loads(line) for line in output.splitlines() if line.startswith('{"cell"')]
    outcomes = {one.pop("cell"): one for one in told}
    missing = {"error": ending}
    return {name: outcomes.get(name, missing) for name in cells_of(case)}


def environment():
    """The variables of the program: it finds cartwheel and the tests from any folder."""
    paths = [str(ROOT), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def cells_of(case):
    return MODES[:3] if isinstance(case, Players) else MODES


def shown(outcome):
    """The text of a cell."""
    if outcome is None:
        return "–"
    if "error" in outcome:
        text = " ".join(outcome["error"].split()).replace("|", "\\|")
        own = "; so does Gymnasium from itself" if "itself" in outcome else ""
        return f"**differs**: {text[:160]}{own}"
    if "refused" in outcome:
        return "refused"
    episodes = outcome["episodes"]
    return f"equal, {episodes} episodes" if episodes else "equal"


def row(case, outcomes, package):
    cells = [shown(outcomes.get(name)) for name in MODES]
    return [package, f"`{case}`", *cells, case.trap]


def versions():
    """The packages of this run, in one line."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:  # a dozen names
            found.append(f"{name} missing")
    return ", ".join(found)


def table(only, share):
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    values, last = 0, None
    for case in [*CASES, *PLAYERS]:
        if only not in f"{case.name} {case}":
            continue
        outcomes = run(case, share)
        values += sum(outcome.get("values", 0) for outcome in outcomes.values())
        lines.append("| " + " | ".join(row(case, outcomes, "" if case.name == last else case.name)))
        lines[-1] += " |"
        last = case.name
        print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, "", f"{values:,} values were compared."]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the file whose table is replaced")
    parser.add_argument("--only", default="", help="only environments with this text")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of each environment")
    arguments = parser.parse_args()
    lines = [machine_line(), "", versions(), "", *table(arguments.only, arguments.share)]
    if arguments.write is None:
        print("\n".join(lines))
        return
    before, _, rest = arguments.write.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    arguments.write.write_text(before + "\n".join([BEGIN, "", *lines, "", END]) + after)


if __name__ == "__main__":
    main()
