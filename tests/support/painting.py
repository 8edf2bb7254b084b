"""Environments whose frames say what was drawn."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class PaintingEnv(gym.Env):
    """A frame has one color: red tells the row, green the episode, blue the step.

    Args:
        row: A number below 12.
        length: The steps of an episode.
        size: Height and width of frames.
        render_mode: ``"rgb_array"``, or ``None``.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012
    observation_space = Box(0, 255, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, row, length=3, size=(6, 10), render_mode="rgb_array"):
        self.row, self.length, self.size, self.render_mode = row, length, size, render_mode
        self.episode, self.steps, self.drawn = -1, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.episode, self.steps = self.episode + 1, 0
        return np.array([self.episode, 0], np.float32), {}

    def step(self, _action):
        self.steps += 1
        shown = np.array([self.episode, self.steps], np.float32)
        over = self.steps == self.length
        return shown, float(self.steps), over, False, {"success": over, "count": self.steps}

    def render(self):
        self.drawn += 1
        return frame(self.row, self.episode, self.steps, self.size)


def frame(row, episode, steps, size=(6, 10)):
    """The frame of an environment in this state."""
    color = np.array([20 * (row + 1), 20 * (episode + 1), 20 * (steps + 1)], np.uint8)
    return np.broadcast_to(color, (*size, 3)).copy()
