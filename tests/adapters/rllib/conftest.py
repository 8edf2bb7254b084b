"""RLlib is imported by the tests that run, because other environments collect these files, too."""

import importlib
import multiprocessing
import warnings

import pytest


@pytest.fixture(scope="session", autouse=True)
def _first_runner():
    """Torch and Ray start threads for the first runner of a program; no test is blamed for them."""
    importlib.import_module("torch").set_num_threads(1)
    runners = importlib.import_module("tests.adapters.rllib.runners")
    runners.sampled(runners.single("CartPole-v1", "sync", 1))


@pytest.fixture(autouse=True)
def _rllibs_own_warnings():
    """RLlib registers an environment anew for each runner, and uses what it deprecates."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*Overriding environment rllib-.*")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


@pytest.fixture(autouse=True)
def _no_worker_is_left_behind():
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture
def runners():
    return importlib.import_module("tests.adapters.rllib.runners")


@pytest.fixture
def agents():
    return importlib.import_module("tests.adapters.rllib.agents")


@pytest.fixture
def rllib():
    return importlib.import_module("cartwheel.rllib")
