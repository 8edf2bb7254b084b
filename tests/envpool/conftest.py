"""The fixture ``make``."""

import pytest

from cartwheel import envpool


@pytest.fixture
def make():
    """``envpool.make``; its pools are closed after the test."""
    made = []

    def make(*args, **keywords):
        made.append(envpool.make(*args, **keywords))
        return made[-1]

    yield make
    for envs in made:
        envs.close()
