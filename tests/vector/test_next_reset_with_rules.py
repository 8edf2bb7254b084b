"""Seeds of automatic resets where steps repeat their action, as single environments do it."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.oracle import N, S


class Repeated(gym.Wrapper):
    """Repeats its action once, unless the episode ends; its next own reset has ``seed``."""

    seed = None

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            observation, more, terminated, truncated, info = self.env.step(action)
            reward += more
        return observation, reward, terminated, truncated, info

    def reset(self, *, seed=None, options=None):
        chosen, self.seed = self.seed, None
        return self.env.reset(seed=chosen if seed is None else seed, options=options)


@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
def test_a_step_that_repeats_its_action_resets_with_them(build_any, mode):
    for case in (Case("CartPole-v1", {"max_episode_steps": 7}), Case("FrozenLake-v1")):
        envs = build_any([case] * 3, autoreset_mode=mode, action_repeat=2)
        oracle = SyncVectorEnv([lambda case=case: Repeated(case())] * 3, autoreset_mode=mode)
        random = np.random.default_rng(1)
        assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
        for step in range(40):
            if step % 5 == 0:
                envs.next_reset(seed=1000 * step)
                for row, env in enumerate(oracle.envs):
                    env.seed = 1000 * step + row
            actions = random.integers(2, size=3)
            assert_identical(envs.step(actions), oracle.step(actions))
        oracle.close()
