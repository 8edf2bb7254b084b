"""A point robot that has to reach a target: the environment of the four scripts of this folder.

It reports ``success`` in its infos, as robot simulators do. Without terminations, a policy that
stays at the target has the higher return than one that passes it.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

#: Below this distance, the target counts as reached.
REACHED = 0.1
#: How far the robot moves in a step, at most, along each axis.
SPEED = 0.1
#: Steps of an episode.
HORIZON = 50


class Reach(gym.Env[NDArray[np.float32], NDArray[np.float32]]):
    """A robot in a square; it drifts a little, so it has to hold its place.

    Observation, ``float32`` ``(4,)``: the positions of the robot and of the target. Action,
    ``float32`` ``(2,)``: the velocity, from -1 to 1. Reward: minus the distance to the target.
    The episode terminates at the target.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 - as Gymnasium
    observation_space = Box(-2.0, 2.0, (4,), np.float32)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, render_mode: str | None = None) -> None:
        """The robot is placed by ``reset``."""
        self.render_mode = render_mode
        self._robot = self._target = np.zeros(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Places robot and target at random; ``options`` may have a ``"target"``."""
        super().reset(seed=seed)
        self._robot, self._target = self.np_random.uniform(-1.0, 1.0, (2, 2))
        if options and "target" in options:
            self._target = np.array(options["target"], np.float64)
        return self._observation(), {"success": self._is_there()}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Moves the robot."""
        drift = self.np_random.normal(0.0, 0.02, 2)
        moved = self._robot + SPEED * np.clip(action, -1.0, 1.0) + drift
        self._robot = np.clip(moved, -2.0, 2.0)
        distance = float(np.linalg.norm(self._robot - self._target))
        success = self._is_there()
        return self._observation(), -distance, success, False, {"success": success}

    def render(self) -> NDArray[np.uint8]:
        """Draws the square from above: the target in green, the robot in blue; ``(96, 96, 3)``."""
        y, x = np.mgrid[2.0:-2.0:96j, -2.0:2.0:96j]
        frame = np.full((96, 96, 3), 245, np.uint8)
        for place, radius, color in (
            (self._target, 0.2, (60, 170, 90)),
            (self._robot, 0.12, (40, 90, 200)),
        ):
            frame[(x - place[0]) ** 2 + (y - place[1]) ** 2 < radius**2] = color
        return frame

    def _is_there(self) -> bool:
        return bool(np.linalg.norm(self._robot - self._target) < REACHED)

    def _observation(self) -> NDArray[np.float32]:
        return np.concatenate([self._robot, self._target]).astype(np.float32)
