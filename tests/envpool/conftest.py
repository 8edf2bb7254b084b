"""The fixtures ``make``, ``theirs`` and ``pair``."""

import gc
import importlib
import warnings

import pytest

from cartwheel import envpool as ours


@pytest.fixture
def make():
    """``envpool.make``; its pools are closed after the test."""
    made = []

    def make(*args, **keywords):
        made.append(ours.make(*args, **keywords))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


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
