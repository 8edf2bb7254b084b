"""`python -m tests` runs every test once, and fails if one fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import SIZE, groups

ROOT = Path(__file__).parents[2]
#: Runs each of some files in a process of its own, with an option. They are forked from this one.
PROGRAM = """
import sys
from tests.__main__ import run
option, *files = sys.argv[1:]
sys.exit(run([[file] for file in files], 1, [option]))
"""


def test_each_file_is_in_one_group():
    files = [ROOT / file for group in groups() for file in group]
    assert sorted(files) == sorted((ROOT / "tests").rglob("test_*.py"))


def test_no_group_is_large():
    for group in groups():
        assert len(group) == 1 or sum((ROOT / file).stat().st_size for file in group) <= SIZE


@pytest.mark.parametrize(
    ("option", "status", "counts"),
    [
        ("--color=no", 1, "1 failed, 3 passed"),
        pytest.param("-k=passes", 0, "2 passed, 2 deselected", marks=pytest.mark.slow),
        ("-x", 1, "1 failed"),
        ("--no-such-option", 4, "no tests ran"),
    ],
)
def test_the_counts_and_the_status_are_those_of_all_groups(tmp_path, option, status, counts):
    texts = {
        "first": "def test_fails():\n    assert 7 == 6 + 2\n"
        "import atexit, os\natexit.register(os.write, 1, b'the program ends\\n')\n",
        "second": "def test_passes(): pass\ndef test_too(): pass\ndef test_also_passes(): pass\n",
    }
    files = []
    for name, text in texts.items():
        files.append(tmp_path / f"test_{name}.py")
        files[-1].write_text(text)
    command = [sys.executable, "-c", PROGRAM, option, *map(str, files)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    printed = ended.stdout
    assert f"==> {counts} in " in printed
    assert ("assert 7 == (6 + 2)" in printed) == (status == 1)
    last = printed.rpartition("==> failures\n")[2]
    assert ("E       assert 7 == (6 + 2)\n" in last and "FAILED " in last) == (status == 1)
    assert "[100%]" not in printed
