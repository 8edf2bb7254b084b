"""Environments whose every value is known in advance, and a model of a vector of them.

The model is written from the documentation and shares no code with cartwheel. It takes from the
infos which rows failed, and computes from that what each row must return.
"""

import random
import time
from dataclasses import dataclass, field

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

#: The action that raises.
RAISE = 3


class LedgerEnv(gym.Env):
    """Episodes of 1 to 12 steps, determined by row, seed, episode number and actions."""

    action_space = Discrete(4)

    def __init__(self, row, pause=0.0, width=4, hangs=0.0):
        """``hangs`` is the probability that a step never returns."""
        self.row, self.pause, self.width, self.seed, self.episode = row, pause, width, 0, 0
        self.hangs = hangs
        self.observation_space = Box(-np.inf, np.inf, (width,), np.float64)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        if seed is not None:
            self.seed, self.episode = seed, 0
        self.episode += 1
        self.draw = np.random.default_rng([self.row, self.seed, self.episode])
        self.length, self.time = 1 + int(self.draw.integers(12)), 0
        self.state = self.draw.random(self.width)
        return self.state.copy(), {"episode": self.episode}

    def step(self, action):
        if self.pause:
            time.sleep(self.pause)
        if self.hangs and random.random() < self.hangs:
            time.sleep(3600)
        if action == RAISE:
            raise ValueError(f"row {self.row} got the action that raises")
        self.time += 1
        self.state = self.state / 2 + action + self.draw.random(self.width)
        over = self.time >= self.length
        info = {"episode": self.episode, "time": self.time}
        return (
            self.state.copy(),
            self.state.sum(),
            over and self.length % 2 == 0,
            (over and self.length % 2 == 1),
            info,
        )


@dataclass
class Frame:
    """The required result of a row."""

    observation: np.ndarray
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    final: np.ndarray | None = None


@dataclass
class Row:
    """One row of the model.

    ``failed`` is the failure in the infos: ``"env_error"``, ``"worker_restarted"`` or ``None``.
    """

    number: int
    mode: str
    width: int = 4
    env: LedgerEnv = field(init=False)
    over: bool = False
    seed: int | None = None
    replaced: int = 0
    shown: np.ndarray | None = None

    def __post_init__(self):
        self.env = self._made()

    def _made(self):
        return LedgerEnv(self.number, width=self.width)

    def reset(self, seed, failed, episode):
        """An explicit reset; ``episode`` is the number in its info."""
        if failed == "worker_restarted":
            self._lose(episode - 1)
        if seed is not None:
            self.seed, self.replaced = seed, 0
        self.over = False
        return self._show(Frame(self.env.reset(seed=seed)[0]))

    def step(self, action, failed, episode):
        """One step; ``episode`` is the number in its info."""
        if failed == "worker_restarted":
            return self._show(self._restart(episode))
        if self.over:
            assert self.mode == "NextStep"
            self.over = False
            return self._show(Frame(self.env.reset()[0]))
        if failed == "env_error":
            self.env, self.replaced = self._made(), self.replaced + 1
            self.env.reset(seed=self._next_seed())
            return self._show(self._end(Frame(self.shown, truncated=True)))
        observation, reward, terminated, truncated, _ = self.env.step(action)
        frame = Frame(observation, reward, terminated, truncated)
        return self._show(self._end(frame) if terminated or truncated else frame)

    def _lose(self, episode):
        """Takes a new environment, which has begun ``episode`` unrecorded episodes."""
        self.env, self.seed, self.replaced = self._made(), None, 0
        self.env.episode = episode

    def _restart(self, episode):
        self._lose(episode - (2 if self.mode == "SameStep" else 1))
        first = Frame(self.env.reset()[0])
        if self.over and self.mode == "NextStep":
            self.over = False
            return first
        first.truncated = True
        return self._end(first)

    def _next_seed(self):
        if self.seed is None:
            return None
        return int(np.random.SeedSequence([self.seed, self.replaced]).generate_state(1)[0])

    def _end(self, frame):
        if self.mode != "SameStep":
            self.over = True
            return frame
        frame.final = frame.observation
        frame.observation = self.env.reset()[0]
        return frame

    def _show(self, frame):
        self.shown = frame.observation
        return frame
