"""The fixtures ``make``, ``theirs`` and ``pair``."""

import gc
import importlib
import warnings

import pytest

from cartwheel import envpool as ours


def pytest_collection_modifyitems(items):
    """Tests with EnvPool are slow: to install it takes as long as all other packages."""
    for item in items:
        if "theirs" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture
def make(closes):
    """``envpool.make``; its pools are closed after the test."""
    return lambda *args, **keywords: closes(ours.make(*args, **keywords))


@pytest.fixture(scope="session")
def theirs():
    """The module ``envpool`` of EnvPool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module("envpool")
        except Exception as error:  # its import looks for assets
            pytest.skip(f"EnvPool cannot be imported: {error!r}")


@pytest.fixture
def pair(theirs):
    """Makes the same pool with cartwheel and with EnvPool."""
    made = []

    def make(*args, **keywords):
        made.extend(module.make(*args, **{"seed": 7, **keywords}) for module in (ours, theirs))
        return made[-2:]

    yield make
    while made:  # EnvPool's threads end when the pool is garbage-collected
        made.pop().close()
    gc.collect()
