"""Every id passes Gymnasium's checks and cartwheel's: with ``-m slow``, a few minutes."""

import warnings

import gymnasium as gym
import pytest
from comparison import CHAINS, IDS
from gymnasium.utils.env_checker import check_env

import cartwheel
from cartwheel import testing

#: Checks that are skipped for no level.
CHECKED = {"spaces", "same_seed", "rows", "modes", "states", "parameters"}


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_accepts_every_id(env_id):
    env = gym.make(f"cartwheel_minigrid/{env_id}", render_mode="rgb_array", tile_size=4)
    with env, warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_every_promise_of_a_vector_environment_is_kept_by_every_id(env_id):
    envs = cartwheel.make_vec(f"cartwheel_minigrid/{env_id}", 5, num_workers=2, tile_size=4)
    with envs:
        report = testing.check_vector_env(envs, steps=20)
    assert set(report.passed) >= CHECKED


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_every_promise_of_a_vector_environment_is_kept_by_every_observation(chain):
    envs = cartwheel.make_vec(
        "cartwheel_minigrid/MiniGrid-DoorKey-6x6-v0",
        5,
        num_workers=2,
        observation=chain,
        tile_size=4,
    )
    with envs:
        report = testing.check_vector_env(envs, steps=20)
    assert set(report.passed) >= CHECKED
