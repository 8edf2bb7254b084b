"""Environments with random episodes, a policy for them, and their episodes played one by one."""
# ruff: noqa: ARG002 (signatures are Gymnasium's)

from functools import partial

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from tests.support.repetitions import times

NUM_ENVS, EPISODES, SEED = 5, 4, 11


RESULTS = ["returns", "lengths", "terminated", "truncated", "success_at_end"]


class LotteryEnv(gym.Env):
    """Random lengths, rewards, flags and success; odd rows are 50 times as long as even ones."""

    observation_space = Dict(luck=Box(-np.inf, np.inf, (2,), np.float64), t=Discrete(1000))
    action_space = Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, row=0, raises_at=None):
        self.longest = 2 if row % 2 == 0 else times(100, with_full=200)
        self.raises_at = raises_at
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.length = int(self.np_random.integers(self.longest // 2, self.longest + 1))
        return self.observe(), {"is_success": True}

    def step(self, action):
        self.t += 1
        self.steps += 1
        if self.steps == self.raises_at:
            raise RuntimeError("lost the ticket")
        reward = float(action @ self.np_random.normal(size=2))
        over = self.t == self.length
        flags = [(True, False), (False, True), (True, True)][self.np_random.integers(3)]
        info = {"is_success": bool(self.np_random.integers(2))} if over else {"is_success": True}
        return self.observe(), reward, *(flags if over else (False, False)), info

    def observe(self):
        return {"luck": self.np_random.normal(size=2), "t": self.t}


def lotteries(num_envs=NUM_ENVS, **keywords):
    return [partial(LotteryEnv, row, **keywords) for row in range(num_envs)]


def follow_luck(observations):
    """A policy whose action for a row depends on that row alone."""
    return observations["luck"] * 2 + observations["t"][:, None]


def alone(env_fns, policy, episodes, seed):
    """The episodes of each environment when it is stepped alone."""
    records = {name: [] for name in RESULTS}
    for row, env_fn in enumerate(env_fns):
        env = env_fn()
        row_seed = seed + row
        for _ in range(episodes):
            observation, _ = env.reset(seed=row_seed)
            row_seed, total, length, terminated, truncated = None, 0.0, 0, False, False
            while not (terminated or truncated):
                batch = {key: np.asarray(value)[None] for key, value in observation.items()}
                action = policy(batch)[0]
                observation, reward, terminated, truncated, info = env.step(action)
                total, length = total + reward, length + 1
            row_of = [total, length, terminated, truncated, info["is_success"]]
            for name, value in zip(RESULTS, row_of, strict=True):
                records[name].append(value)
    return {name: np.reshape(values, (-1, episodes)) for name, values in records.items()}


def same(evaluation, expected):
    for name in RESULTS:
        values = getattr(evaluation, name)
        assert values.shape == expected[name].shape
        assert values.tobytes() == expected[name].astype(values.dtype).tobytes(), name
