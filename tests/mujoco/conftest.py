"""Fixtures of tests of own models: environments that are closed after the test."""

import pytest

import cartwheel.mujoco
from tests.support.own_models import FIELDS, FRAME_SKIP, ROWS, SCALE, TASK, XML


@pytest.fixture
def make():
    """Makes vector environments, which are closed after the test."""
    made = []

    def make(model=XML, num_envs=ROWS, **keywords):
        given = {"frame_skip": FRAME_SKIP, "observation": FIELDS, "reset_noise_scale": SCALE}
        made.append(cartwheel.mujoco.make(model, num_envs, **{**given, **TASK, **keywords}))
        return made[-1]

    yield make
    for envs in made:
        envs.close()
