"""Runs inside a root: says what is there, and whether pip would take the wheel there.

    python release/inside.py WHEEL_NAME REPORT

Imports nothing of this repository, which is not importable in a root.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median

ROUNDS = 9
CODE = (
    "import gymnasium, numpy, time; began = time.perf_counter(); import cartwheel;"
    "print(time.perf_counter() - began)"
)


def import_ms(python: str) -> float:
    """Milliseconds of `import cartwheel` after what it depends on: the median of new processes."""
    command = [python, "-c", CODE]
    seconds = [
        float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        for _ in range(ROUNDS)
    ]
    return 1000 * median(seconds)


def main() -> None:
    """Writes the report."""
    from packaging.tags import sys_tags  # not where a trial only imports this file
    from packaging.utils import parse_wheel_filename

    name, report = sys.argv[1:]
    if parse_wheel_filename(name)[3].isdisjoint(sys_tags()):
        first = next(iter(sys_tags()))
        raise SystemExit(f"pip would not install {name} here, where wheels are for {first}")
    seen = {"python": platform.python_version(), "import_ms": import_ms(sys.executable)}
    Path(report).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
