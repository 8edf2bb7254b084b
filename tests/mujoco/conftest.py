"""Fixtures of tests of own models: environments that are closed after the test."""

import pytest

import cartwheel.mujoco
from tests.support.own_models import FIELDS, FRAME_SKIP, ROWS, SCALE, TASK, XML


@pytest.fixture
def make(closes):
    """Makes vector environments, which are closed after the test."""

    def make(model=XML, num_envs=ROWS, **keywords):
        given = {"frame_skip": FRAME_SKIP, "observation": FIELDS, "reset_noise_scale": SCALE}
        return closes(cartwheel.mujoco.make(model, num_envs, **{**given, **TASK, **keywords}))

    return make
