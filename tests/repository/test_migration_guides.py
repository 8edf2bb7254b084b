"""The scripts of docs/migrate run as the pages say: after, and before where the library is there.

tests/adapters/trainers/test_pufferlib.py runs the old script of PufferLib's page.
"""

import importlib.util
import os
from pathlib import Path

import pytest

from tests.support.migrations import PAGES, scripts
from tests.support.processes import run_script

ROOT = Path(__file__).parents[2]
#: The page, the library whose script it changes, and the mark of the environment that has both.
GUIDES: list[tuple[str, str, pytest.MarkDecorator | tuple[()]]] = [
    ("gymnasium", "gymnasium", ()),
    ("envpool", "envpool", ()),
    ("sb3", "stable_baselines3", pytest.mark.torch),
    ("pufferlib", "", ()),
    ("maniskill", "mani_skill", ()),
    ("bbrl", "bbrl", pytest.mark.torch),
]
EACH = [pytest.param(page, library, marks=mark, id=page) for page, library, mark in GUIDES]
#: Pages that promise the same digits.
EQUAL = {"gymnasium", "sb3"}


@pytest.fixture
def output_of(tmp_path, monkeypatch):
    """A function that runs a script and returns what it prints."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    def run(script):
        path = tmp_path / "script.py"
        path.write_text(script, encoding="utf-8")
        return run_script(path, folder=tmp_path)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("page", "library"), EACH)
def test_the_scripts_of_a_guide_run_after_the_change_and_before_it(page, library, output_of):
    for before, after in scripts(page):
        new = output_of(after)
        assert new.strip()
        if library and importlib.util.find_spec(library):
            old = output_of(before)
            assert old == new or page not in EQUAL


def test_every_guide_has_a_script_that_changes():
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert pages == {page for page, *_ in GUIDES}
    for page in pages:
        assert scripts(page)
        assert all(before != after for before, after in scripts(page))
        for script in (script for pair in scripts(page) for script in pair):
            compile(script, page, "exec")


@pytest.mark.torch
def test_the_script_of_bbrl_has_as_many_transitions_as_the_page_says(output_of):
    ((_, after),) = scripts("bbrl")
    said = (PAGES / "bbrl.md").read_text(encoding="utf-8")
    number = output_of(after).split()[0]
    assert f"Both have {number} transitions" in said
