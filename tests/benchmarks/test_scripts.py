"""Every script of `make bench` can be run as its README says: by -m, from the root."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("process", "native", "rollouts", "wrappers")
SCRIPTS = [script for folder in FOLDERS for script in (ROOT / "benchmarks" / folder).glob("*.py")]


@pytest.mark.slow
def test_every_script_finds_what_it_imports():
    """In a process of its own: some packages that scripts measure start threads."""
    modules = [".".join(script.relative_to(ROOT).with_suffix("").parts) for script in SCRIPTS]
    program = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)"
    command = [sys.executable, "-c", program, *modules]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, len(modules) > 20) == (0, True), done.stderr


def test_the_readme_names_every_script():
    readme = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    assert [script.name for script in SCRIPTS if script.name not in readme] == []
