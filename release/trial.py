"""Installs a wheel into an empty environment and steps it there."""

import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from release.command import ROOT

ROUNDS = 15
DEPENDENCIES = "import gymnasium, numpy"


@dataclass(frozen=True)
class Trial:
    """What was seen of a wheel that was installed and stepped."""

    #: Milliseconds that `import cartwheel` takes, without those of Gymnasium and NumPy.
    import_ms: float


def try_out(package: Path, environment: dict[str, str] | None = None) -> Trial:
    """Installs a wheel or an sdist with pip, then runs examples/quickstart.py.

    Runs in an environment and a folder that contain nothing of this repository.
    """
    with tempfile.TemporaryDirectory(prefix="cartwheel-") as folder:
        venv.create(f"{folder}/venv", with_pip=True)
        python = f"{folder}/venv/bin/python"

        def run(*command: str | Path) -> None:
            subprocess.run([python, *command], cwd=folder, env=environment, check=True)

        run("-m", "pip", "install", "--quiet", package)
        run("-I", ROOT / "examples" / "quickstart.py")
        return Trial(import_time(python, folder))


def import_time(python: str, folder: str) -> float:
    """The median of what `import cartwheel` adds to a process, in milliseconds."""
    added = []
    for _ in range(ROUNDS):
        seconds = {}
        for code in (DEPENDENCIES, f"{DEPENDENCIES}, cartwheel"):
            began = time.perf_counter()
            subprocess.run([python, "-I", "-c", code], cwd=folder, check=True)
            seconds[code] = time.perf_counter() - began
        without, with_cartwheel = seconds.values()
        added.append(with_cartwheel - without)
    return 1000 * median(added)
