"""The errors of importing an adapter without its trainer."""

import importlib
import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import cartwheel

#: For each adapter the library that it needs, and its extra.
NEEDED = {
    "agilerl": ("agilerl", "agilerl"),
    "ale": ("ale_py", "ale"),
    "jax": ("jax", "jax"),
    "ray": ("ray", "ray"),
    "rllib": ("ray", "rllib"),
    "sb3": ("stable_baselines3", "sb3"),
    "skrl": ("skrl", "skrl"),
    "tianshou": ("tianshou", "tianshou"),
    "torchrl": ("torchrl", "torchrl"),
}


def forget(monkeypatch, adapter):
    """Makes Python import an adapter anew."""
    for name in list(sys.modules):
        if name.startswith(f"cartwheel.{adapter}"):
            monkeypatch.delitem(sys.modules, name)


#: For each adapter the newest version that is too old.
TOO_OLD = {
    "agilerl": "2.57.3",
    "jax": "0.4.38",
    "ray": "2.39.9",
    "rllib": "2.59.1",
    "sb3": "2.6.1a1",
    "skrl": "1.4.3",
    "tianshou": "1.2",
    "torchrl": "0.13.2",
}


@pytest.mark.parametrize("adapter", TOO_OLD)
def test_a_library_that_is_too_old_is_an_import_error_that_names_both_versions(
    monkeypatch, adapter
):
    library, extra = NEEDED[adapter]
    forget(monkeypatch, adapter)
    monkeypatch.setattr("cartwheel._internal.versions._NEW_ENOUGH", set())
    monkeypatch.setattr(importlib.metadata, "version", lambda _: TOO_OLD[adapter])
    found = (
        rf"needs {library} .* but {TOO_OLD[adapter]} is installed: pip install -U '.*\[{extra}\]'"
    )
    with pytest.raises(ImportError, match=found):
        importlib.import_module(f"cartwheel.{adapter}")


def test_the_oldest_versions_are_those_of_the_extras():
    project = Path(__file__).parents[2] / "pyproject.toml"
    for adapter in TOO_OLD:
        library, extra = NEEDED[adapter]
        source = Path(importlib.util.find_spec(f"cartwheel.{adapter}").origin).read_text()
        oldest = re.search(r'^load\(.*, "([\d.]+)"\)', source, re.MULTILINE)[1]
        wanted = re.search(
            rf'^{extra} = \["([^"]*)>={re.escape(oldest)}["; ]', project.read_text(), re.M
        )
        assert wanted[1].partition("[")[0].replace("-", "_") == library


@pytest.mark.parametrize("adapter", NEEDED)
def test_a_missing_library_is_an_import_error_that_names_its_extra(monkeypatch, adapter):
    library, extra = NEEDED[adapter]
    forget(monkeypatch, adapter)
    monkeypatch.setitem(sys.modules, library, None)
    needs = (
        rf"cartwheel\.{adapter} needs {library}: pip install 'cartwheel\[{extra}\]' \(.*{library}"
    )
    with pytest.raises(ImportError, match=needs) as caught:
        importlib.import_module(f"cartwheel.{adapter}")
    assert caught.value.name in (library, library.partition(".")[0])


def test_every_extra_is_tried_by_make_test_extras():
    pytest.importorskip("tomllib", reason="tools of the release need Python 3.11")
    tried = importlib.import_module("release.extras")
    assert set(tried.USES) == set(tried.extras()) - {"all"}


def test_messages_name_extras_that_exist():
    metadata = importlib.metadata.metadata("cartwheel")
    extras = set(metadata.get_all("Provides-Extra"))
    package = Path(cartwheel.__file__).parent
    sources = [file.read_text() for file in package.rglob("*.py")]
    named = {
        extra for source in sources for extra in re.findall(r"cartwheel\[([a-z0-9]+)\]", source)
    }
    assert named
    assert named <= extras
    assert {extra for _, extra in NEEDED.values()} <= extras


def test_all_has_every_extra_that_users_import_but_for_those_that_bind_them():
    metadata = importlib.metadata.metadata("cartwheel")
    extras = set(metadata.get_all("Provides-Extra"))
    parts = {
        extra
        for requirement in metadata.get_all("Requires-Dist")
        if re.search(r"extra == ['\"]all['\"]", requirement)
        for extra in re.search(r"\[([a-z0-9,]+)\]", requirement)[1].split(",")
    }
    assert parts == extras - {"all", "agilerl", "ale", "rllib", "test", "bench", "envpool"}
