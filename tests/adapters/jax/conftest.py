"""Builders of native environments for compiled functions."""

import pytest

import cartwheel


@pytest.fixture
def make(closes):
    """Makes native environments; closes them after the test."""

    def make(env_id="CartPole-v1", num_envs=3, **keywords):
        if keywords.get("autoreset_mode") == "same_step":
            keywords = {"final_obs": "dense", **keywords}
        return closes(cartwheel.NativeVectorEnv(env_id, num_envs, **keywords))

    return make
