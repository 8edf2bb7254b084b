"""Runs the tests that concern a package with several versions of it, and prints a table.

    python -m tools.matrix [--folders vector wrappers …] 1.2.2 1.3.0 1.4.0
    python -m tools.matrix --package mujoco 3.2.0 4.0.0

The package is Gymnasium, or MuJoCo. Each version has an environment of its own,
``.venv-gym-<version>`` or ``.venv-mujoco-<version>``, which ``make matrix`` and
``make matrix-mujoco`` set up. The exit status is 1 if a test failed, or if a version that is not
the one of the table ran.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
#: Folders of tests of what Gymnasium's behavior or classes decide. The others (workers that die,
#: reports, benchmarks) only take environments and registered ids from it.
FOLDERS = {
    "gymnasium": [
        *("vector", "native", "make", "wrappers", "internal", "cli", "testing", "rollouts"),
        *("recorder", "evaluation", "returns", "envpool"),
        *("test_public_names.py", "test_reprs.py"),
    ],
    "mujoco": ["native/mujoco/test_parity.py", "native/mujoco/test_errors.py"],
}
VENVS = {"gymnasium": ".venv-gym-", "mujoco": ".venv-mujoco-"}
COUNTS = ("passed", "failed", "skipped")


def counted(report: Path) -> dict[str, int]:
    """Tests that passed, failed and were skipped, from pytest's report in JUnit's format."""
    tests = failed = skipped = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        tests += int(suite.attrib["tests"])
        failed += int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        skipped += int(suite.attrib["skipped"])
    return {"passed": tests - failed - skipped, "failed": failed, "skipped": skipped}


def run(python: Path, report: Path, tests: list[str], **environ: str) -> dict[str, int] | None:
    """Runs tests with an interpreter; returns the counts, or ``None`` if pytest could not."""
    report.unlink(missing_ok=True)
    command = [
        str(python),
        "-m",
        "pytest",
        "--full",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        f"--junitxml={report}",
    ]
    environ = {**os.environ, **environ}
    ended = subprocess.run([*command, *tests], cwd=ROOT, env=environ, check=False)
    return counted(report) if ended.returncode in (0, 1) and report.exists() else None


def run_with(package, version, folders):
    """Runs the tests with a version of a package."""
    python = ROOT / f"{VENVS[package]}{version}" / "bin" / "python"
    asked = [python, "-c", f"import {package}; print({package}.__version__)"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if found != version:
        raise SystemExit(f"{python} imports {package} {found}: delete the environment")
    report = ROOT / "target" / "matrix" / f"{package}-{version}.xml"
    return run(python, report, [f"tests/{folder}" for folder in folders])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--package", choices=FOLDERS, default="gymnasium", help="(%(default)s)")
    parser.add_argument("--folders", nargs="+", help="folders and files of tests")
    arguments = parser.parse_args()
    package, folders = arguments.package, arguments.folders or FOLDERS[arguments.package]
    lines = [f"| {package} | {' | '.join(COUNTS)} | minutes |", "|---" * (len(COUNTS) + 2) + "|"]
    fine = True
    for version in arguments.versions:
        print(f"==> pytest with {package} {version}", flush=True)
        began = time.monotonic()
        counts = run_with(package, version, folders)
        minutes = (time.monotonic() - began) / 60
        fine &= counts is not None and not counts["failed"]
        cells = ["stopped"] * len(COUNTS) if counts is None else [f"{counts[n]:,}" for n in COUNTS]
        lines.append(f"| {version} | {' | '.join(cells)} | {minutes:.1f} |")
    print("\n".join(lines))
    sys.exit(not fine)


if __name__ == "__main__":
    main()
