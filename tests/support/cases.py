"""Environments that exist in Gymnasium and natively, with keywords, and actions for them."""

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tests.support.taxi  # noqa: F401 - registers `Taxi-v4` where Gymnasium does not


@dataclass(frozen=True)
class Case:
    """An environment, its keywords, and how its episodes can end in a run of ``steps`` steps.

    With a ``dtype``, actions are drawn from the action space at random, and have this dtype;
    otherwise `choose` knows the environment.

    A case is also an environment function that builds Gymnasium's environment, so every kind of
    vector environment can be built from a list that repeats one case.
    """

    env_id: str
    keywords: dict[str, Any] = field(default_factory=dict)
    terminates: bool = True
    truncates: bool = True
    steps: int = 265
    dtype: type | None = None

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        dtype = ["float64"] if self.dtype is np.float64 else []
        parts = [self.env_id, *map(str, self.keywords.items()), *dtype]
        return "-".join(parts).replace(" ", "")

    @property
    def title(self):
        """A short name, for keywords that fill lines: the first one, and how many follow."""
        names = list(self.keywords)
        return "-".join([self.env_id, *names[:1], *[str(len(names) - 1)] * (len(names) > 1)])

    def __call__(self):
        if self.env_id == "Null-v0":
            return NullEnv(**self.keywords)
        return gym.make(self.env_id, disable_env_checker=True, **self.keywords)


class NullEnv(gym.Env):
    """``Null-v0`` in Python, because Gymnasium has no such environment."""

    def __init__(self, shape=(1,), episode_steps=0):
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = Discrete(1)
        self.episode_steps = episode_steps
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self._observation(), {}

    def step(self, _):
        self.steps += 1
        return self._observation(), 0.0, self.steps == self.episode_steps, False, {}

    def _observation(self):
        return np.full(self.observation_space.shape, self.steps % 256, np.uint8)


#: Most promises are tested with this environment.
POLE = Case("CartPole-v1")


def lean(observations):
    """A policy for ``CartPole-v1``: pushes to where the pole leans."""
    return (observations[:, 2] > 0).astype(np.int64)


#: Environments with short episodes, by nature or by a step limit: with infos and without, with
#: scalar, array and tuple observations.
SHORT = [
    Case("CartPole-v1", {"max_episode_steps": 11}),
    Case("Pendulum-v1", {"max_episode_steps": 4}),
    Case("Blackjack-v1"),
    Case("FrozenLake-v1", {"max_episode_steps": 9}),
    Case("Taxi-v4", {"max_episode_steps": 6, "fickle_passenger": True}),
]


DEFAULTS = [
    Case("CartPole-v0", truncates=False, steps=150),
    Case("CartPole-v1", truncates=False, steps=150),
    Case("MountainCar-v0", truncates=False),
    Case("MountainCarContinuous-v0", truncates=False),
    Case("Pendulum-v1", terminates=False),
    Case("Acrobot-v1", truncates=False),
    Case("Blackjack-v1", truncates=False, steps=150),
    Case("FrozenLake-v1", truncates=False, steps=150),
    Case("FrozenLake8x8-v1", truncates=False, steps=150),
    Case("CliffWalking-v1", truncates=False, steps=150),
    Case("CliffWalkingSlippery-v1", truncates=False),
    Case("Taxi-v4", truncates=False, steps=150),
]
ISLAND = ("SFFFFG", "FHFFHF", "FFGFFS")
VARIANTS = [
    Case("CartPole-v1", {"sutton_barto_reward": True}, truncates=False),
    Case("CartPole-v0", {"sutton_barto_reward": True, "max_episode_steps": 12}),
    Case("CartPole-v1", {"max_episode_steps": 12}),
    Case("MountainCar-v0", {"goal_velocity": 0.03, "max_episode_steps": 108}),
    Case("MountainCar-v0", {"goal_velocity": 1}, terminates=False),
    Case("MountainCarContinuous-v0", {"goal_velocity": 0.02, "max_episode_steps": 150}),
    Case("MountainCarContinuous-v0", {"goal_velocity": 0.04}, truncates=False),
    Case("Pendulum-v1", {"g": 9.81, "max_episode_steps": 30}, terminates=False),
    Case("Pendulum-v1", {"g": 0, "max_episode_steps": 1}, terminates=False),
    Case("Pendulum-v1", {"g": -3.7, "max_episode_steps": 2}, terminates=False),
    Case("Acrobot-v1", {"max_episode_steps": 75}),
    Case("Blackjack-v1", {"natural": True}, truncates=False),
    Case("Blackjack-v1", {"natural": True, "sab": False}, truncates=False),
    Case("Blackjack-v1", {"sab": False, "max_episode_steps": 2}),
    Case("FrozenLake-v1", {"is_slippery": False, "max_episode_steps": 9}),
    Case("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.8}, truncates=False),
    Case("FrozenLake-v1", {"desc": ISLAND, "success_rate": 0.1}, truncates=False),
    Case("FrozenLake-v1", {"desc": ISLAND, "map_name": "nowhere"}, truncates=False),
    Case("FrozenLake-v1", {"desc": ("SG",), "success_rate": 0}, truncates=False),
    Case("FrozenLake-v1", {"success_rate": 1}, truncates=False),
    Case("FrozenLake-v1", {"reward_schedule": (2, -0.1, -0.001)}, truncates=False),
    Case("FrozenLake8x8-v1", {"reward_schedule": (10, 0, -1), "max_episode_steps": 20}),
    Case("CliffWalking-v1", {"is_slippery": True, "max_episode_steps": 60}, terminates=False),
    Case("CliffWalkingSlippery-v1", {"is_slippery": False, "max_episode_steps": 20}),
    Case("Taxi-v4", {"is_rainy": True}, truncates=False),
    Case("Taxi-v4", {"fickle_passenger": True}, truncates=False),
    Case("Taxi-v4", {"is_rainy": True, "rainy_probability": 0.5, "max_episode_steps": 100}),
    Case("Taxi-v4", {"is_rainy": True, "rainy_probability": 1}, truncates=False),
    Case("Taxi-v4", {"fickle_passenger": True, "fickle_probability": 1.0}, truncates=False),
    Case("Taxi-v4", {"is_rainy": True, "fickle_passenger": True, "max_episode_steps": 40}),
]


def twins(case, num_envs, mode=AutoresetMode.NEXT_STEP):
    """A ``SyncVectorEnv`` of Gymnasium's environments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about ids that are out of date
        return SyncVectorEnv([case] * num_envs, autoreset_mode=mode)


# Actions: chosen from the observations, or at random.


@cache
def route(env_id, desc, map_name):
    """For each state, the action on the shortest path to the goal, from Gymnasium's tables."""
    keywords = {"Taxi-v4": {}, "CliffWalking-v1": {}}.get(
        env_id, {"desc": desc, "map_name": map_name, "is_slippery": False}
    )
    table = gym.make(env_id, **keywords).unwrapped.P
    ways = {
        (state, action): way[0][1:]
        for state, actions in table.items()
        for action, way in actions.items()
    }
    best = max(reward for _, reward, over in ways.values() if over)
    reached = {state for state, reward, over in ways.values() if over and reward == best}
    actions = np.zeros(len(table), np.int64)
    while step := {
        state: action
        for (state, action), (after, _, _) in ways.items()
        if after in reached and state not in reached
    }:
        reached |= step.keys()
        actions[list(step)] = list(step.values())
    return actions


def way_around():
    """The path away from the slippery cliff: up, along the far edge, and down to the goal."""
    actions = np.zeros((4, 12), np.int64)
    actions[0], actions[:, -1] = 1, 2
    return actions.reshape(-1)


@cache
def bounds(case):
    """The bounds of the actions of a case."""
    env = case()
    env.close()
    return env.action_space.low, env.action_space.high


def choose(case, observations, random, num_envs):
    """Actions with which some episodes reach the goal."""
    if case.dtype is not None:
        low, high = bounds(case)
        drawn = random.uniform(low, high, (num_envs, *low.shape))
        # Some rows nearly rest, others take actions out of bounds.
        return (drawn * random.uniform(0, 1.2, (num_envs, 1))).astype(case.dtype)
    name = case.env_id.split("-")[0]
    if name == "Pendulum":
        return random.uniform(-3, 3, (num_envs, 1)).astype(np.float32)
    if name == "MountainCarContinuous":
        push = np.where(observations[:, 1:] >= 0, 1, -1) * random.uniform(-0.1, 1.2, (num_envs, 1))
        return push.astype(np.float32)
    if name in ("CartPole", "Blackjack"):
        return random.integers(0, 2, num_envs)
    if name == "MountainCar":
        planned, count, slips = 2 * (observations[:, 1] >= 0), 3, 0.05
    elif name == "Acrobot":
        planned, count, slips = 2 * (observations[:, 5] > 0), 3, 0.05
    else:
        where = {"FrozenLake8x8": "FrozenLake-v1"}.get(name, case.env_id)
        map_name = "8x8" if name == "FrozenLake8x8" else case.keywords.get("map_name", "4x4")
        slippery = name == "CliffWalkingSlippery"
        actions = way_around() if slippery else route(where, case.keywords.get("desc"), map_name)
        planned, count, slips = actions[observations], 6 if name == "Taxi" else 4, 0.2
    wild = random.random(num_envs) < slips
    return np.where(wild, random.integers(0, count, num_envs), planned)
