"""Installs a wheel or an sdist into an empty environment and steps it there.

    python -m release.trial DIST [--sdist] [--tests]

tries the wheel of a folder that pip chooses for this Python and machine. It needs nothing but a
Python with pip, so that it runs where users are.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from release.chosen_tests import REQUIREMENTS, chosen
from release.command import ROOT
from release.inside import import_ms


def try_out(
    package: Path, environment: dict[str, str] | None = None, *, tests: bool = False
) -> float:
    """Installs a package with pip, runs examples/quickstart.py; milliseconds that its import takes.

    Runs in an environment and a folder that contain nothing of this repository, but for the chosen
    tests, which run if `tests` is true.
    """
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        venv.create(f"{folder}/venv", with_pip=True)
        python = f"{folder}/venv/bin/python"

        def run(*command: str | Path, cwd: str | Path = folder) -> None:
            subprocess.run([python, *command], cwd=cwd, env=environment, check=True)

        run("-m", "pip", "install", "--quiet", package)
        run("-I", ROOT / "examples" / "quickstart.py")
        if tests:
            run("-m", "pip", "install", "--quiet", *REQUIREMENTS)
            full = ("--full", "-q", "-p", "no:cacheprovider")
            run("-m", "pytest", *full, *chosen(is_emulated=False), cwd=ROOT)
        return import_ms(python)


def wheel_for_this(dist: Path, folder: Path) -> Path:
    """A copy, in `folder`, of the wheel in `dist` that pip chooses for this Python and machine."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index"]
    command += ["--only-binary=:all:", f"--find-links={dist}", f"--dest={folder}", "cartwheel"]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main() -> None:
    """Tries a package and says which."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dist", type=Path, help="a folder with the packages of a release")
    parser.add_argument("--sdist", action="store_true", help="the sdist, which needs a toolchain")
    parser.add_argument("--tests", action="store_true", help="run the chosen tests, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        if given.sdist:
            (package,) = given.dist.resolve().glob("*.tar.gz")
        else:
            package = wheel_for_this(given.dist, Path(folder))
        took = try_out(package, tests=given.tests)
        print(f"{package.name}: installed and stepped; its import takes {took:.0f} ms")


if __name__ == "__main__":
    main()
