"""Rollouts of pools of ``cartwheel.envpool``, whose spaces are those of one environment."""

import numpy as np
import pytest

import cartwheel
from cartwheel import envpool


@pytest.mark.parametrize("task_id", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_a_rollout_of_a_pool_is_that_of_its_environments(task_id):
    pool = envpool.make(task_id, num_envs=3, seed=1, max_episode_steps=5)
    envs = cartwheel.NativeVectorEnv(task_id, 3, max_episode_steps=5)
    space = pool.single_action_space
    still = np.ones((3, *space.shape), space.dtype)
    shown, expected = (
        cartwheel.Collector(each, lambda _: still, num_steps=12, seed=1).collect()
        for each in (pool, envs)
    )
    np.testing.assert_array_equal(shown.observations, expected.observations)
    assert shown.observations.dtype == expected.observations.dtype
    np.testing.assert_array_equal(shown.actions, expected.actions)
    np.testing.assert_array_equal(shown.rewards, expected.rewards.astype(np.float32))
    np.testing.assert_array_equal(shown.terminated, expected.terminated)
    np.testing.assert_array_equal(shown.truncated, expected.truncated)
    np.testing.assert_array_equal(shown.valid, expected.valid)
    pool.close()
    envs.close()
