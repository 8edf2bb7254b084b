"""Environments whose rewards are arrays, one number for each objective."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class TreasureEnv(gym.Env):
    """Dive for a treasure, or turn back: rewards are its value and the cost of time."""

    action_space = Discrete(2)
    observation_space = Box(0, 10, (1,), np.float32)

    def __init__(self, depth=3):
        self.reward_space = Box(np.array([0.0, -1.0]), np.array([10.0, 0.0]), dtype=np.float64)
        self.depth, self.place = depth, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place = 0
        return self.observe(), {}

    def step(self, action):
        self.place += int(action)
        found = self.place == self.depth
        return self.observe(), np.array([self.depth * found, -1], np.float32), found, False, {}

    def observe(self):
        return np.array([self.place], np.float32)


class NoisyEnv(gym.Env):
    """Draws rewards of ``k`` objectives; episodes terminate and are truncated at random.

    Rewards are arrays of one object that is written again, lists, or tuples, in turn. Some are
    ``-0.0``, infinite or not a number.
    """

    action_space = Discrete(3)
    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    rare = (-0.0, np.inf, np.nan)

    def __init__(self, k=3):
        self.reward_space = Box(-np.inf, np.inf, (k,), np.float64)
        self.rewards, self.steps = np.zeros(k), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        self.rewards[...] = -7  # must not be seen
        return self.np_random.normal(size=2), {"begins": True}

    def step(self, action):
        self.steps += 1
        self.rewards[...] = self.np_random.normal(size=len(self.rewards)) + action
        if self.np_random.random() < 0.1:
            self.rewards[self.np_random.integers(len(self.rewards))] = self.rare[self.steps % 3]
        forms = (lambda: self.rewards, self.rewards.tolist, lambda: tuple(self.rewards))
        terminated, truncated = (bool(draw < 0.15) for draw in self.np_random.random(2))
        reward = forms[self.steps % 3]()
        return self.np_random.normal(size=2), reward, terminated, truncated, {"t": self.steps}

    def get_state(self):
        return self.rewards.copy(), self.steps, self.np_random.bit_generator.state

    def set_state(self, state):
        rewards, self.steps, self.np_random.bit_generator.state = state
        self.rewards[...] = rewards


class OneObjective(gym.Wrapper):
    """Returns one of the objectives as the reward, a number."""

    reward_space = None

    def __init__(self, env, objective):
        super().__init__(env)
        self.objective = objective

    def step(self, action):
        observation, rewards, *rest = self.env.step(action)
        return observation, float(rewards[self.objective]), *rest
