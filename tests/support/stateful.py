"""Environments in Python whose state can be saved."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Text
from gymnasium.wrappers import OrderEnforcing, TimeLimit


class PlainWalkEnv(gym.Env):
    """A random walk that ends at random, without methods that save it."""

    action_space = Discrete(3)
    observation_space: gym.Space = Box(-np.inf, np.inf, (2,), np.float64)
    #: The chance that a step is the last one.
    ends = 0.15

    def __init__(self):
        self.walk, self.steps = np.zeros(2), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.walk, self.steps = self.np_random.normal(size=2), 0
        return self.observe(), {"start": float(self.walk[0])}

    def step(self, action):
        self.steps += 1
        self.walk += self.np_random.normal(size=2) * (1 + action)
        over = bool(self.np_random.random() < self.ends)
        return self.observe(), float(self.walk.sum()), over, False, {"steps": self.steps}

    def observe(self):
        return self.walk.copy()


class WalkEnv(PlainWalkEnv):
    """Its state can be saved, random numbers included."""

    def get_state(self):
        return self.walk.copy(), self.steps, self.np_random.bit_generator.state

    def set_state(self, state):
        walk, self.steps, self.np_random.bit_generator.state = state
        self.walk = walk.copy()


class NestedWalkEnv(WalkEnv):
    """Its observations have parts of fixed shape and others."""

    observation_space = Dict(
        walk=Box(-np.inf, np.inf, (2,), np.float64), name=Text(9), steps=Discrete(99)
    )

    def observe(self):
        return {"walk": self.walk.copy(), "name": "x" * (self.steps % 7), "steps": self.steps}


class EndlessWalkEnv(WalkEnv):
    """Only a step limit ends it."""

    ends = 0.0


class TouchyWalkEnv(WalkEnv):
    """Refuses states if it was told to."""

    touchy = False

    def set_state(self, state):
        if self.touchy:
            self.touchy = False
            self.walk[:] = 77  # half restored
            raise ValueError("this state is refused")
        super().set_state(state)


def walk(kind=WalkEnv, limit=6):
    """A walk with Gymnasium's usual wrappers."""
    return TimeLimit(OrderEnforcing(kind()), limit)


class OneArgument(gym.Wrapper):
    """Saves a walk in its own way; for environments that have no such methods."""

    def get_state(self):
        return {"walk": WalkEnv.get_state(self.unwrapped)}

    def set_state(self, state):
        WalkEnv.set_state(self.unwrapped, state["walk"])
