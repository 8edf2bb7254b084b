"""An environment whose episodes differ from row to row, in observations of several forms."""

import gymnasium as gym
import numpy as np

SPACES = {
    "array": gym.spaces.Box(-1e6, 1e6, (2,), np.float32),
    "dict": gym.spaces.Dict(
        time=gym.spaces.Discrete(1000), noise=gym.spaces.Box(-1, 1, (1,), np.float64)
    ),
    "number": gym.spaces.Discrete(1000),
    "text": gym.spaces.Text(8),
}


class Lived(gym.Env):
    """Its observations, rewards, infos and lengths of episodes depend on its random numbers."""

    def __init__(self, longest, form="array"):
        self.action_space = gym.spaces.Discrete(3)
        self.longest, self.form = longest, form
        self.observation_space = SPACES[form]
        self.mark = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.length = 0, int(self.np_random.integers(1, self.longest + 1))
        return self.shown(), {"length": self.length, "told": options or None}

    def step(self, action):
        self.time += 1
        over = self.time >= self.length
        info = {"action": int(action)}
        if over:
            info["ended"] = {"at": self.time, "name": "end"}
        reward = self.np_random.normal() + action
        return self.shown(), reward, over and self.length % 2 == 0, over, info

    def shown(self):
        noise = self.np_random.uniform()
        return {
            "array": np.array([self.time, noise], np.float32),
            "dict": {"time": self.time, "noise": np.array([noise])},
            "number": self.time,
            "text": f"t{self.time}",
        }[self.form]

    def render(self, size=2):
        return np.full((size, size, 3), self.time, np.uint8)


def fns_of(longest, form="array"):
    return [lambda n=n: Lived(n, form) for n in longest]
