"""Tianshou's classes for the tests of its adapter."""

import importlib

import pytest

from tests.support.one_thread import one_thread


@pytest.fixture(scope="module")
def tianshou():
    """Tianshou's classes, and ours."""
    one_thread()

    class Classes:
        env = importlib.import_module("tianshou.env")
        data = importlib.import_module("tianshou.data")
        policy = importlib.import_module("tianshou.algorithm.algorithm_base").Policy
        ours = importlib.import_module("cartwheel.tianshou").CartwheelVectorEnv

    return Classes
