"""Which versions of Gymnasium are accepted, and what is said about the others."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

from cartwheel.gymnasium_versions import OLDEST, check_version

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("version", [OLDEST, gym.__version__, "1.3.0a1", "1.10", "2.0.0"])
def test_a_version_that_is_new_enough_is_accepted(version):
    check_version(version)


@pytest.mark.parametrize("version", ["0.29.1", "1.0.0", "1.1", "1.2.1", "1.2.1.post2"])
def test_the_error_says_what_is_installed_and_what_is_needed(version):
    needed = f"cartwheel needs Gymnasium {OLDEST} or newer, but {version} is installed"
    with pytest.raises(ImportError, match=re.escape(needed)):
        check_version(version)


def test_an_old_version_is_refused_before_anything_of_it_is_used():
    program = "import gymnasium; gymnasium.__version__ = '1.0.0'; import cartwheel"
    died = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    last = died.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: cartwheel needs Gymnasium {OLDEST} or newer, but 1.0.0 is installed: "
        f"pip install 'gymnasium>={OLDEST}'"
    )


def test_the_package_requires_the_version_that_the_error_names():
    assert f'"gymnasium>={OLDEST},<2"' in (ROOT / "pyproject.toml").read_text()
