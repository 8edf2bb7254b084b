"""The twin in Python of ``tests/native/plugins/rust/src/relay.rs``."""
# ruff: noqa: ARG002 (signatures are PettingZoo's, whether an environment needs them or not)

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv


class Relay(ParallelEnv):
    """Agents walk to the goal at 3; the last one joins once another one has arrived."""

    metadata = {"name": "relay"}  # noqa: RUF012
    render_mode = None
    possible_agents = ["left", "right", "late"]  # noqa: RUF012
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
