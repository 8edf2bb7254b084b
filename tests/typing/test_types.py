"""Programs of users pass `mypy --strict` as they stand, and wrong choices are refused by it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import gymnasium as gym
import pytest

import cartwheel
from cartwheel._internal.literals import NativeId

PROGRAM = Path(__file__).with_name("program.py")


def mypy(program, cache):
    """Checks a program as strictly as possible; unused ignores are errors, too."""
    source = Path(cartwheel.__file__).parents[1]
    path = {} if source.name == "site-packages" else {"MYPYPATH": str(source)}
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--follow-imports=silent"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)],
        env={**os.environ, **path},
        cwd=program.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def cache(request):
    """Mypy's cache of this module's imports; the next run uses it again."""
    return request.config.cache.mkdir("mypy")


@pytest.mark.slow  # `make lint` checks the program as strictly, with the repository's options
def test_a_users_program_has_exactly_the_errors_that_it_expects(cache):
    checked = mypy(PROGRAM, cache)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_an_error_that_does_not_occur_is_an_error(cache, tmp_path):
    """So the test above can fail."""
    changed = tmp_path / "program.py"
    changed.write_text(PROGRAM.read_text().replace('executor="proces"', 'executor="process"'))
    checked = mypy(changed, cache)
    assert checked.stdout.count('Unused "type: ignore" comment') == 2, checked.stdout
    changed.write_text(PROGRAM.read_text().replace("  # type: ignore[call-arg]", ""))
    checked = mypy(changed, cache)
    assert checked.stdout.count("[call-arg]") == 2, checked.stdout


def test_the_types_name_every_native_id():
    registered = [name for name in gym.registry if name.startswith("cartwheel/")]
    assert sorted(get_args(NativeId)) == sorted(registered)
