"""Builders of vector environments for Stable-Baselines3; they are closed after the test."""

import importlib

import pytest

from tests.support.vec_envs import INLINE, KINDS, PROCESS, THREAD, theirs


@pytest.fixture(scope="session", autouse=True)
def _imported():
    """Import torch once, so that no test is blamed for its threads."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    importlib.import_module("stable_baselines3")


def _closed(kind, closes):
    def build(env_fns, **keywords):
        return closes(kind(env_fns, **keywords))

    build.kind = str(kind)
    return build


@pytest.fixture(params=[INLINE, THREAD, PROCESS], ids=str)
def build(request, closes):
    """Builds a ``CartwheelVecEnv``: inline, with threads, with processes."""
    return _closed(request.param, closes)


@pytest.fixture(params=KINDS, ids=str)
def build_everywhere(request, closes):
    """Like ``build``, also with a single worker and with more workers than environments."""
    return _closed(request.param, closes)


@pytest.fixture
def build_inline(closes):
    """Like ``build``, but only inline."""
    return _closed(INLINE, closes)


@pytest.fixture
def dummy(closes):
    """Builds a ``DummyVecEnv``, which is closed after the test."""
    return lambda env_fns: closes(theirs("DummyVecEnv")(env_fns))
