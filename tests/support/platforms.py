"""Marks of tests that need what some platforms lack."""

import importlib.util

import pytest

from cartwheel._cartwheel import PLATFORM

#: Pygame, which draws Gymnasium's environments, has no wheel for a Python without the GIL.
needs_pygame = pytest.mark.skipif(
    importlib.util.find_spec("pygame") is None, reason="it draws with pygame"
)


def linux_only(reason):
    """Skips a test in a build with the feature ``portable``, and on other systems than Linux."""
    return pytest.mark.skipif(PLATFORM != "linux", reason=f"{PLATFORM} build: {reason}")
