"""Environments that show masks of actions, which are functions of their observations."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


def mask_of(count, length=4):
    """The mask that goes with an observation; after each sixth step it allows no action."""
    mask = (count * 5 + np.arange(length) * 3) % 4 != 0
    return mask & (count % 7 != 6)


def expected(counts, length=4):
    """The masks of a batch of observations: rows that allow nothing allow everything."""
    masks = np.array([mask_of(int(count), length) for count in np.ravel(counts)])
    return np.where(masks.any(axis=1, keepdims=True), masks, True)


class MaskedEnv(gym.Env):
    """Counts its steps, beginning with a random number; an episode has from 2 to 9 steps.

    Masks are in the infos under ``key``, or with ``shows`` in a part of the observations.
    """

    def __init__(self, key="action_mask", shows=False, action_space=None, form=np.int8, fails=()):
        self.key, self.shows, self.form, self.fails = key, shows, form, fails
        self.action_space = action_space or Discrete(4)
        self.length = gym.spaces.utils.flatdim(self.action_space)
        self.observation_space = Box(0, 1000, (1,), np.int64)
        if shows:
            mask = Box(0, 1, (self.length,), np.int8)
            self.observation_space = Dict(zeros=Box(0, 1), count=self.observation_space)
            self.observation_space[key] = mask

    def reset(self, *, seed=None, options=None):
        del options
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(20))
        self.last = self.count + int(self.np_random.integers(2, 10))
        return self.shown()

    def step(self, _):
        self.count += 1
        if self.count in self.fails:
            raise ValueError("failed on purpose")
        observation, info = self.shown()
        return observation, 1.0, self.count == self.last, False, info

    def shown(self):
        mask = mask_of(self.count, self.length).astype(np.int8)
        observation = np.array([self.count])
        if self.shows:
            return {"zeros": np.zeros(1, np.float32), "count": observation, self.key: mask}, {}
        return observation, {"steps": self.count, self.key: self.formed(mask)}

    def formed(self, mask):
        if self.form is list:
            return mask.tolist()
        if self.form is tuple:  # as Gymnasium's `MultiDiscrete.sample` takes them
            return tuple(np.split(mask, np.cumsum(self.action_space.nvec)[:-1]))
        return mask.astype(self.form)

    def get_state(self):
        return self.count, self.last, self.np_random.bit_generator.state

    def set_state(self, state):
        self.count, self.last, self.np_random.bit_generator.state = state
