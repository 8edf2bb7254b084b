"""Spare environments change the time of resets, and no result."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from tests.support.executors import EXECUTORS, INLINE, PROCESS, Executor


class SeededEnv(gym.Env):
    """Episodes of 1 to 6 steps, which the seed of their reset decides."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        assert seed is not None
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, 7))
        return self.np_random.normal(size=2), {}

    def step(self, action):
        self.left -= 1
        reward = float(self.np_random.normal() + action)
        return self.np_random.normal(size=2), reward, self.left == 0, False, {}


def act(observations):
    return (np.abs(observations[:, 0]) * 1000).astype(np.int64) % 5


def played(seed, row, num_steps):
    """Observations and rewards of a row, by one environment alone."""
    env, episode, rows = SeededEnv(), 0, []
    observation, _ = env.reset(seed=seed_of(seed, row, episode))
    for _ in range(num_steps):
        action = int(act(observation[None])[0])
        after, reward, over, _, _ = env.step(action)
        rows.append((observation, reward))
        observation = after
        if over:
            episode += 1
            observation, _ = env.reset(seed=seed_of(seed, row, episode))
    return [np.array(part) for part in zip(*rows, strict=True)]


def seed_of(seed, row, episode):
    return int(np.random.SeedSequence((seed, row, episode)).generate_state(1)[0])


@pytest.mark.parametrize("executor", [*EXECUTORS, Executor("process", {"num_workers": 7})], ids=str)
@pytest.mark.parametrize("standby", [1, 3, 6, 9])
@pytest.mark.parametrize(
    "bounds",
    [{"order": "free"}, {"order": "free", "run_ahead": 1}, {"order": "groups", "groups": 2}],
    ids=str,
)
def test_no_result_tells_which_environment_played(executor, standby, bounds):
    envs = executor([SeededEnv] * (4 + standby), autoreset_mode="disabled")
    collector = cartwheel.Collector(envs, act, 5, seed=11, standby=standby, **bounds)
    rollouts = [collector.collect() for _ in range(8)]
    collector.close()
    envs.close()
    for row in range(4):
        observations, rewards = played(11, row, 40)
        parts = [rollout.observations[:-1, row] for rollout in rollouts]
        np.testing.assert_array_equal(np.concatenate(parts), observations)
        parts = [rollout.rewards[:, row] for rollout in rollouts]
        np.testing.assert_array_equal(np.concatenate(parts), rewards)
        assert rollouts[-1].carry.rewards.shape == (4,)


def test_after_a_reset_without_a_seed_new_episodes_follow():
    envs = PROCESS([SeededEnv] * 6, autoreset_mode="disabled")
    collector = cartwheel.Collector(envs, act, 5, seed=11, order="free", standby=2)
    begun = set()
    for _ in range(4):
        collector.reset()
        rollout = collector.collect()
        starts = rollout.observations[rollout.is_first]
        for start in starts.tolist():
            assert tuple(start) not in begun
            begun.add(tuple(start))
    observations, _ = collector.reset(seed=11)
    again, _ = collector.reset(seed=11)
    np.testing.assert_array_equal(observations, again)
    envs.close()


def test_standby_needs_a_mode_in_which_the_collector_resets():
    for mode in ("next_step", "same_step"):
        envs = INLINE([SeededEnv] * 4, autoreset_mode=mode)
        with pytest.raises(ValueError, match="`standby` needs the autoreset mode DISABLED"):
            cartwheel.Collector(envs, act, 5, order="free", standby=1)
        envs.close()


def test_a_column_must_be_left():
    envs = INLINE([SeededEnv] * 4, autoreset_mode="disabled")
    make = partial(cartwheel.Collector, envs, act, 5, order="free")
    with pytest.raises(ValueError, match="`standby` must be an integer from 0 to 3, got 4"):
        make(standby=4)
    with pytest.raises(ValueError, match="`columns` must be an integer from 1 to 2, got 3"):
        make(standby=2, columns=3)
    envs.close()
