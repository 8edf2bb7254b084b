"""Commands of the toolchain, run in the checkout."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def output_of(*command: str) -> str:
    """The output of a command, stripped."""
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout.strip()
