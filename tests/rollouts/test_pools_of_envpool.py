"""Rollouts of pools of ``cartwheel.envpool``, whose spaces are those of one environment."""

import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from cartwheel.wrappers import RecordEpisodeStatistics


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


CALLERS = {
    "step": lambda pool: pool.step(np.zeros(3, int)),
    "send": lambda pool: (pool.send(np.zeros(2, int), [0, 2]), pool.recv()),
    "reset": lambda pool: pool.reset(),
    "reset of a row": lambda pool: pool.reset([1]),
}


@pytest.mark.parametrize("called", CALLERS)
@pytest.mark.parametrize("wrap", [lambda pool: pool, RecordEpisodeStatistics])
def test_after_another_caller_of_the_pool_the_next_rollout_begins_anew(called, wrap):
    pool = envpool.make("CartPole-v1", num_envs=3, seed=1)
    collector = cartwheel.Collector(wrap(pool), lambda _: np.zeros(3, int), num_steps=4)
    assert collector.collect().is_first[0].all()
    assert not collector.collect().is_first[0].any()
    CALLERS[called](pool)
    rollout = collector.collect()
    assert rollout.is_first[0].all()
    assert not rollout.carry.lengths.any()
    pool.close()


@pytest.mark.parametrize(("steps", "counted"), [(0, 3), (1, 0)])
def test_a_wrapper_counts_the_episodes_that_it_saw_begin(steps, counted):
    pool = envpool.make("CartPole-v1", num_envs=3, seed=1, max_episode_steps=2)
    pool.reset()
    for _ in range(steps):
        pool.step(np.zeros(3, int))
    envs = RecordEpisodeStatistics(pool)
    for _ in range(2 - steps):
        envs.step(np.zeros(3, int))
    assert envs.episode_count == counted
    pool.close()
