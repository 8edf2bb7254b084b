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


def _closed(kind):
    built = []

    def build(env_fns, **keywords):
        built.append(kind(env_fns, **keywords))
        return built[-1]

    build.kind = str(kind)
    yield build
    for envs in built:
        envs.close()


@pytest.fixture(params=[INLINE, THREAD, PROCESS], ids=str)
def build(request):
    """Builds a ``CartwheelVecEnv``: inline, with threads, with processes."""
    yield from _closed(request.param)


@pytest.fixture(params=KINDS, ids=str)
def build_everywhere(request):
    """Like ``build``, also with a single worker and with more workers than environments."""
    yield from _closed(request.param)


@pytest.fixture
def build_inline():
    """Like ``build``, but only inline."""
    yield from _closed(INLINE)


@pytest.fixture
def dummy():
    """Builds a ``DummyVecEnv``, which is closed after the test."""
    yield from _closed(lambda env_fns: theirs("DummyVecEnv")(env_fns))
