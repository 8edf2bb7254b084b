"""What users see who import a room of a trainer without the trainer."""

import importlib
import sys

import pytest

#: For each room the library that it needs, and its extra.
NEEDED = {
    "ale": ("ale_py", "ale"),
    "ray": ("ray", "ray"),
    "rllib": ("ray.rllib", "rllib"),
    "sb3": ("stable_baselines3", "sb3"),
    "skrl": ("skrl", "skrl"),
    "tianshou": ("tianshou", "tianshou"),
}


@pytest.mark.parametrize("room", NEEDED)
def test_a_missing_library_is_an_import_error_that_names_its_extra(monkeypatch, room):
    library, extra = NEEDED[room]
    for name in list(sys.modules):
        if name.startswith(f"cartwheel.{room}"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    needs = rf"cartwheel\.{room} needs {library}: pip install 'cartwheel\[{extra}\]' \(.*{library}"
    with pytest.raises(ImportError, match=needs) as caught:
        importlib.import_module(f"cartwheel.{room}")
    assert caught.value.name in (library, library.partition(".")[0])
