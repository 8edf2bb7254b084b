"""Marks of tests that need what only one implementation of the core's `platform` has."""

import pytest

from cartwheel._cartwheel import PLATFORM


def linux_only(reason):
    """Skips a test in a build with the feature ``portable``, and on other systems than Linux."""
    return pytest.mark.skipif(PLATFORM != "linux", reason=f"{PLATFORM} build: {reason}")
