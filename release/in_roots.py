"""Runs the wheels of dist/ where they are meant to run: other C libraries, another processor.

    python -m release.in_roots [ROOT …] [--tests PATH …]

For each root of `release.roots`: pip chooses the wheel and what it needs for that system, and puts
them into an empty folder. The root's own Python imports them, runs examples/quickstart.py and the
tests of `release.chosen_tests`. Writes a table to ``target/roots.md``. The exit status is 1 if a
wheel does not run or a test fails.

Roots for another processor are emulated by qemu. That shows wrong bits, layouts and calls, but not
the weak order of memory of the real processor: qemu's threads run on this one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.tags import cpython_tags
from packaging.utils import parse_wheel_filename

from release import chroot, cross_python
from release.chosen_tests import REQUIREMENTS, REQUIREMENTS_ON_GLIBC, chosen
from release.command import ROOT as REPOSITORY
from release.roots import ROOTS_OF_WHEELS, Root, check_needs, make_qemu, make_root
from tools.matrix import COUNTS, counted

DIST = REPOSITORY / "dist"
TABLE = REPOSITORY / "target" / "roots.md"
HEADER = "| root | wheel | Python | C library | machine | import | passed | failed | skipped |"
PYTHON_VERSION = tuple(map(int, cross_python.VERSION.split(".")))
#: Seconds. Emulation is slow, and a hang is still a failure.
TEST_TIMEOUT = {False: 300, True: 1800}


def wheel_for(root: Root) -> Path:
    """The wheel of dist/ that pip would choose in the root."""
    for tag in cpython_tags(PYTHON_VERSION, platforms=root.platforms):
        for wheel in sorted(DIST.glob("cartwheel-*.whl")):
            if tag in parse_wheel_filename(wheel.name)[3]:
                return wheel
    raise SystemExit(f"no wheel of {DIST} is for {root.platforms[0]}: run `make wheels` first")


def install(root: Root, wheel: Path) -> Path:
    """Puts the wheel, what it needs and what the tests need into an empty folder."""
    site = chroot.ROOTS / f"{root.name}.site"
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", f"--target={site}"]
    command += ["--only-binary=:all:", "--implementation=cp"]
    command += [f"--python-version={cross_python.VERSION}"]
    command += [f"--platform={platform}" for platform in root.platforms]
    command += [str(wheel), *REQUIREMENTS]
    if "musl" not in root.libc:
        command += REQUIREMENTS_ON_GLIBC
    # The versions of constraints.txt have no wheels for the old glibc.
    subprocess.run(command, env={**os.environ, "PIP_CONSTRAINT": ""}, check=True)
    return site


def try_in(root: Root, tests: Iterable[str]) -> tuple[str, bool]:
    """Makes the root, installs, imports, steps and tests; a line of the table, and success."""
    wheel = wheel_for(root)
    make_root(root)
    print(f"==> {root.name}: {wheel.name}", flush=True)
    variables = {"PYTHONPATH": str(install(root, wheel)), "PYTHONDONTWRITEBYTECODE": "1"}
    python = "/usr/bin/python3"
    found = chroot.RESULTS / f"{root.name}.json"
    report = chroot.RESULTS / f"{root.name}.xml"
    for file in (found, report):
        file.unlink(missing_ok=True)
    inside = [python, "release/inside.py", wheel.name, str(found)]
    chroot.run(root.folder, inside, variables)
    chroot.run(root.folder, [python, "examples/quickstart.py"], variables)
    timeout = f"--timeout={TEST_TIMEOUT[root.is_emulated]}"
    pytest = [python, "-m", "pytest", "--full", "-q", "-p", "no:cacheprovider", timeout]
    status = chroot.run(
        root.folder, [*pytest, f"--junit-xml={report}", *tests], variables, check=False
    )
    seen, counts = json.loads(found.read_text()), counted(report)
    cells = (
        root.name,
        f"`{wheel.name}`",
        seen["python"],
        root.libc,
        f"{root.machine}{', qemu' if root.is_emulated else ''}",
        f"{seen['import_ms']:.0f} ms",
        *(str(counts[name]) for name in COUNTS),
    )
    return f"| {' | '.join(cells)} |", status == 0


def main() -> None:
    """Tries the wheels in the roots and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [root.name for root in ROOTS_OF_WHEELS]
    parser.add_argument("roots", nargs="*", metavar="ROOT", help=f"some of {', '.join(names)}")
    parser.add_argument("--tests", nargs="+", help="instead of the chosen")
    arguments = parser.parse_args()
    if unknown := set(arguments.roots) - set(names):
        parser.error(f"no such root: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    roots = tuple(r for r in ROOTS_OF_WHEELS if r.name in (arguments.roots or names))
    check_needs(roots)
    for root in roots:
        wheel_for(root)  # before anything is downloaded
    lines, well = [HEADER, "|---" * HEADER.count(" | ") + "|---|"], True
    for root in roots:
        with chroot.running(root.machine, make_qemu):
            line, passed = try_in(root, arguments.tests or chosen(is_emulated=root.is_emulated))
        lines.append(line)
        well = well and passed
    table = "\n".join(lines)
    TABLE.write_text(f"{table}\n")
    print(table)
    sys.exit(not well)


if __name__ == "__main__":
    main()
