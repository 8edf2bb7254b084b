"""Builders of native environments for compiled functions."""

import contextlib

import pytest

import cartwheel


@pytest.fixture
def make():
    """Makes native environments; closes them after the test."""
    with contextlib.ExitStack() as stack:

        def make(env_id="CartPole-v1", num_envs=3, **keywords):
            if keywords.get("autoreset_mode") == "same_step":
                keywords = {"final_obs": "dense", **keywords}
            envs = cartwheel.NativeVectorEnv(env_id, num_envs, **keywords)
            return stack.enter_context(contextlib.closing(envs))

        yield make
