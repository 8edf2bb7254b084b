"""Runs the tests on every Python, with the wheel, and prints a line for each.

    python -m release.python_matrix [--tests tests/vector …] [--oldest] 3.10 3.14t

:mod:`release.pythons` finds or builds the Pythons. Each gets an environment below
``target/pythons`` with the wheel of ``dist/`` and its extra ``test``; or, for ``--oldest``, with
the oldest versions that the wheel and its extra ``record`` allow and what `release.chosen_tests`
needs.
The exit status is 1 if a test failed, or if pytest could not run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from release.chosen_tests import REQUIREMENTS, chosen
from release.pythons import FOLDER, SOURCES, find
from tools.matrix import COUNTS, ROOT, run

if TYPE_CHECKING:
    from pathlib import Path

DIST = ROOT / "dist"
FREE_THREADED = ROOT / "tests" / "requirements" / "free-threaded.txt"
OLDEST = ROOT / "tests" / "requirements" / "oldest.txt"
#: The tests of the extra `record`, whose packages the roots do not have.
OF_THE_RECORDER = ("tests/recorder/test_writing.py", "tests/recorder/test_videos.py")


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--tests", nargs="+", help="folders and files")
    parser.add_argument(
        "--oldest", action="store_true", help="the chosen tests, the oldest versions"
    )
    given = parser.parse_args()
    oldest = [*chosen(is_emulated=False), *OF_THE_RECORDER]
    tests = given.tests or (oldest if given.oldest else ["tests"])
    lines = [f"| Python | wheel | {' | '.join(COUNTS)} | minutes |"]
    lines.append("|---|---" + "|--:" * (len(COUNTS) + 1) + "|")
    fine = True
    for name in given.names:
        python = find(name)
        wheel = _wheel(name)
        inside = _environment(name, python, wheel, oldest=given.oldest)
        version = _said(inside, "import platform; print(platform.python_version())")
        print(f"==> pytest, Python {version} with {wheel.name}", flush=True)
        began = time.monotonic()
        # Tests compile plugins: for this Python, which for a free-threaded one is another ABI, and
        # as extension modules, which do not link its library.
        plugins = {"PYO3_PYTHON": str(inside), "PYO3_BUILD_EXTENSION_MODULE": "1"}
        counts = run(inside, FOLDER / f"{name}.xml", tests, **plugins)
        minutes = (time.monotonic() - began) / 60
        fine &= counts is not None and not counts["failed"]
        cells = ["stopped"] * len(COUNTS) if counts is None else [f"{counts[n]:,}" for n in COUNTS]
        abi = "-".join(wheel.stem.split("-")[2:4])
        lines.append(f"| {name} ({version}) | {abi} | {' | '.join(cells)} | {minutes:.1f} |")
    print("\n".join(lines))
    sys.exit(not fine)


def _wheel(name: str) -> Path:
    """The wheel of dist/ for this Python and machine."""
    tag = f"cp{name.replace('.', '')}" if name.endswith("t") else "abi3"
    found = [*DIST.glob(f"cartwheel-*-{tag}-*linux*_{os.uname().machine}.whl")]
    found = [wheel for wheel in found if "musllinux" not in wheel.name]
    if not found:
        raise SystemExit(f"{DIST} has no wheel with the ABI {tag} for this machine: `make wheels`")
    return found[0]


def _environment(name: str, python: Path, wheel: Path, *, oldest: bool) -> Path:
    """The interpreter of an environment in which this wheel is installed, with what tests need."""
    inside = FOLDER / f"venv-{name}{'-oldest' * oldest}" / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", inside.parents[1]], check=True)
    print(f"==> pip install {wheel.name}, with what the tests need", flush=True)
    pip = [str(inside), "-m", "pip", "install", "--quiet"]
    if oldest:
        # The recorder films CartPole.
        needed = (*REQUIREMENTS, "gymnasium[classic-control]", "pytest-xdist>=3.6")
        extra = [str(wheel), "-r", str(OLDEST), *needed]
    elif name.endswith("t"):
        extra = [str(wheel), "-r", str(FREE_THREADED)]
    else:
        extra = [f"{wheel}[test,envpool]"]
    subprocess.run([*pip, *extra], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)
    return inside


def _said(python: Path, program: str) -> str:
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
