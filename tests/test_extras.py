"""What users see who import a room of a trainer without the trainer."""

import importlib
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

#: For each room the library that it needs, and its extra.
NEEDED = {
    "ale": ("ale_py", "ale"),
    "ray": ("ray", "ray"),
    "rllib": ("ray.rllib", "rllib"),
    "sb3": ("stable_baselines3", "sb3"),
    "skrl": ("skrl", "skrl"),
    "tianshou": ("tianshou", "tianshou"),
    "torchrl": ("torchrl", "torchrl"),
}


def forget(monkeypatch, room):
    """Makes Python import a room anew."""
    for name in list(sys.modules):
        if name.startswith(f"cartwheel.{room}"):
            monkeypatch.delitem(sys.modules, name)


#: For each room the newest version that is too old.
TOO_OLD = {
    "ray": "2.39.9",
    "sb3": "2.6.1a1",
    "skrl": "1.4.3",
    "tianshou": "1.2",
    "torchrl": "0.13.2",
}


@pytest.mark.parametrize("room", TOO_OLD)
def test_a_library_that_is_too_old_is_an_import_error_that_names_both_versions(monkeypatch, room):
    library, extra = NEEDED[room]
    forget(monkeypatch, room)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: TOO_OLD[room])
    found = rf"needs {library} .* but {TOO_OLD[room]} is installed: pip install -U '.*\[{extra}\]'"
    with pytest.raises(ImportError, match=found):
        importlib.import_module(f"cartwheel.{room}")


def test_the_oldest_versions_are_those_of_the_extras():
    project = Path(__file__).parents[1] / "pyproject.toml"
    for room in TOO_OLD:
        library, extra = NEEDED[room]
        source = (project.parent / "python/cartwheel" / room / "__init__.py").read_text()
        oldest = re.search(r'^load\(.*, "([\d.]+)"\)', source, re.MULTILINE)[1]
        wanted = re.search(
            rf'^{extra} = \["([^"]*)>={re.escape(oldest)}["; ]', project.read_text(), re.M
        )
        assert wanted[1].partition("[")[0].replace("-", "_") == library


@pytest.mark.parametrize("room", NEEDED)
def test_a_missing_library_is_an_import_error_that_names_its_extra(monkeypatch, room):
    library, extra = NEEDED[room]
    forget(monkeypatch, room)
    monkeypatch.setitem(sys.modules, library, None)
    needs = rf"cartwheel\.{room} needs {library}: pip install 'cartwheel\[{extra}\]' \(.*{library}"
    with pytest.raises(ImportError, match=needs) as caught:
        importlib.import_module(f"cartwheel.{room}")
    assert caught.value.name in (library, library.partition(".")[0])
