"""Runs inside a root: says what is there, and whether pip would take the wheel there.

    python release/inside.py WHEEL_NAME REPORT

Needs nothing of this repository, which is not importable in a root.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

ROUNDS = 5
CODE = (
    "import gymnasium, numpy, time; began = time.perf_counter(); import cartwheel;"
    "print(time.perf_counter() - began)"
)


def import_seconds() -> float:
    """What `import cartwheel` takes in a new process, after what it depends on."""
    command = [sys.executable, "-c", CODE]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(ran.stdout)


def main() -> None:
    """Writes the report."""
    name, report = sys.argv[1:]
    if parse_wheel_filename(name)[3].isdisjoint(sys_tags()):
        first = next(iter(sys_tags()))
        raise SystemExit(f"pip would not install {name} here, where wheels are for {first}")
    seen = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "import_ms": 1000 * median(import_seconds() for _ in range(ROUNDS)),
    }
    Path(report).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
