"""An environment whose observation says how often it was stepped, and with what."""

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class TellsSteps(gym.Env):
    """Observations are the steps since the reset and the last action; ends after ``length``."""

    observation_space = Box(0, 1000, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, length):
        self.length = length
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        observation = np.array([self.steps, action], np.float32)
        return observation, 1.0, self.steps == self.length, False, {}


def run_alone(program):
    """Runs the code of a program from the folder in which ``tests`` is found."""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, cwd=root)
