"""Fixtures of the tests of evaluations."""

import pytest


@pytest.fixture
def build_with():
    """Builds vector environments that are closed after the test."""
    opened = []

    def build(builder, *args, **keywords):
        envs = builder(*args, **keywords)
        opened.append(envs)
        return envs

    yield build
    for envs in opened:
        envs.close()
