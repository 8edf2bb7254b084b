"""Fixtures of the tests of evaluations."""

import pytest


@pytest.fixture
def build_with(closes):
    """Builds vector environments that are closed after the test."""
    return lambda builder, *args, **keywords: closes(builder(*args, **keywords))
