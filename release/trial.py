"""Installs a wheel or an sdist into an empty environment and steps it there."""

import subprocess
import tempfile
import venv
from pathlib import Path

from release.command import ROOT
from release.inside import import_ms


def try_out(package: Path, environment: dict[str, str] | None = None) -> float:
    """Installs a package with pip, runs examples/quickstart.py; milliseconds that its import takes.

    Runs in an environment and a folder that contain nothing of this repository.
    """
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        venv.create(f"{folder}/venv", with_pip=True)
        python = f"{folder}/venv/bin/python"

        def run(*command: str | Path) -> None:
            subprocess.run([python, *command], cwd=folder, env=environment, check=True)

        run("-m", "pip", "install", "--quiet", package)
        run("-I", ROOT / "examples" / "quickstart.py")
        return import_ms(python)
