"""The twins in Python of ``chase.rs`` and ``relay.rs`` in ``rust/src``."""
# ruff: noqa: ARG002 (signatures are PettingZoo's, whether an environment needs them or not)

from typing import ClassVar

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv


class Chase(ParallelEnv):
    """Scouts run to the cell 6; the hunter catches them."""

    metadata: ClassVar = {"name": "chase"}
    render_mode = None
    possible_agents: ClassVar = ["scout_0", "hunter", "scout_1"]

    def __init__(self):
        self.rng, _ = seeding.np_random(0)

    def observation_space(self, agent):
        if agent == "hunter":
            return Dict({"action_mask": MultiBinary([4]), "cells": Box(-99, 99, (3,), np.int64)})
        return Box(-99, 99, (2,), np.float32)

    def action_space(self, agent):
        return Discrete(4) if agent == "hunter" else Box(-1, 1, (1,), np.float32)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng, _ = seeding.np_random(seed)
        self.agents = list(self.possible_agents)
        first, last = self.rng.integers(2, 4), self.rng.integers(2, 4)
        self.cells = {"scout_0": int(first), "hunter": 0, "scout_1": int(last)}
        return self.observe(self.agents), {name: {} for name in self.agents}

    def step(self, actions):
        acting = list(self.agents)
        rewards = dict.fromkeys(acting, 0.0)
        terminated, truncated = dict.fromkeys(acting, False), dict.fromkeys(acting, False)
        self.cells["hunter"] += int(actions["hunter"])
        for name in ("scout_0", "scout_1"):
            if name not in acting:
                continue
            self.cells[name] += int(self.rng.integers(0, 2)) + int(actions[name][0] > 0)
            if self.cells[name] >= 6:
                terminated[name], rewards[name] = True, 1.0
            elif self.cells[name] <= self.cells["hunter"]:
                truncated[name] = True
                rewards["hunter"] += 2.0
        self.agents = [name for name in acting if not (terminated[name] or truncated[name])]
        if self.agents == ["hunter"]:
            terminated["hunter"], self.agents = True, []
        observed = self.observe(acting)
        return observed, rewards, terminated, truncated, {name: {} for name in acting}

    def observe(self, names):
        hunter = self.cells["hunter"]
        observed = {
            name: np.array([self.cells[name], hunter - self.cells[name]], np.float32)
            for name in names
        }
        if "hunter" in observed:
            mask = np.array([1, 1, 1, hunter % 2 == 0], np.int8)
            observed["hunter"] = {"action_mask": mask, "cells": np.array([*self.cells.values()])}
        return observed

    def close(self):
        pass


class Relay(ParallelEnv):
    """Agents walk to the goal at 3; the last one joins once another one has arrived."""

    metadata: ClassVar = {"name": "relay"}
    render_mode = None
    possible_agents: ClassVar = ["left", "right", "late"]
    state_space = Box(0, 99, (2,), np.float64)

    def __init__(self, uneven=False):
        self.uneven = uneven
        self.rng, _ = seeding.np_random(0)

    def observation_space(self, agent):
        return Dict({"action_mask": MultiBinary(3), "place": Box(0, 99, (2,), np.float32)})

    def action_space(self, agent):
        return Discrete(2 if self.uneven and agent == "late" else 3)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng, _ = seeding.np_random(seed)
        self.agents = ["left", "right"]
        self.place = {name: int(self.rng.integers(0, 2)) for name in self.possible_agents}
        self.joined, self.steps = False, 0
        return self.observe(self.agents), {name: {} for name in self.agents}

    def step(self, actions):
        acting = list(self.agents)
        self.steps += 1
        rewards, terminated = {}, dict.fromkeys(acting, False)
        truncated = dict.fromkeys(acting, False)
        for name in acting:
            action = int(actions[name])
            self.place[name] += max(action - int(self.rng.integers(0, 2)), 0)
            rewards[name] = -1.0
            if self.place[name] >= 3:
                terminated[name], rewards[name] = True, 4.0
            elif action == 0 and self.rng.integers(0, 4) == 0:
                truncated[name] = True
        self.agents = [name for name in acting if not (terminated[name] or truncated[name])]
        if any(terminated.values()) and not self.joined:
            self.joined = True
            self.agents.append("late")
        observed = self.observe({*acting, *self.agents})
        return observed, rewards, terminated, truncated, {name: {} for name in acting}

    def observe(self, names):
        return {
            name: {
                "action_mask": np.array([1, 1, self.place[name] % 2 == 0], np.int8),
                "place": np.array([self.place[name], self.steps], np.float32),
            }
            for name in names
        }

    def state(self):
        return np.array([self.steps, sum(self.place.values())], np.float64)

    def close(self):
        pass
