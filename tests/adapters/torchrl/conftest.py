"""Imports that every test of this folder needs."""

import importlib

import pytest


@pytest.fixture(scope="session")
def runs():
    """The module `tests.support.torchrl_runs`, imported only where TorchRL is installed."""
    return importlib.import_module("tests.support.torchrl_runs")
