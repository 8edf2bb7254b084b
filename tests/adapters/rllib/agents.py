"""Multi-agent environments of RLlib: with agents of different spaces, on turns, with faults."""
# ruff: noqa: ARG001, ARG002 (signatures are RLlib's, whether an environment needs them or not)

import time
import uuid

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Text
from ray.rllib.env.multi_agent_env import MultiAgentEnv, make_multi_agent
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv

from tests.envpool.parallel_env import CountdownEnv

TwoPoles = make_multi_agent("CartPole-v1")


def two_poles(config=None):
    return TwoPoles({"num_agents": 2})


class OrderlyCountdownEnv(CountdownEnv):
    """Three agents that leave one after another; RLlib acts for them in any order."""

    def step(self, actions):
        assert set(actions) == set(self.agents)
        return super().step({agent: actions[agent] for agent in self.agents})


def raw_countdown(config=None):
    return OrderlyCountdownEnv()


def countdown(config=None):
    return ParallelPettingZooEnv(raw_countdown())


class TurnsEnv(MultiAgentEnv):
    """One of three agents of different spaces acts at a time; their order is not alphabetical.

    An episode has ``length`` steps, and a seed adds up to two. Agent ``z`` has text and a
    dictionary in its observation, agent 7 an image of 40 KB.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as in Gymnasium

    def __init__(self, length=4):
        super().__init__()
        self.possible_agents = self.agents = ["z", 7, "a"]
        self.observation_spaces = {
            "z": Dict({"at": Discrete(100), "text": Text(10)}),
            7: Box(0, 255, (100, 100, 4), np.uint8),
            "a": Box(-1, 1, (2,), np.float32),
        }
        self.action_spaces = {"z": Discrete(3), 7: Box(0, 1, (2,), np.float32), "a": Discrete(2)}
        self.length, self.more, self.resets = length, 0, 0

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.more = seed % 3
        self.t = 0
        self.resets += 1
        return self._observed(), {"__common__": {"resets": self.resets, "options": options}}

    def step(self, action_dict):
        agent = self.possible_agents[self.t % 3]
        assert list(action_dict) == [agent]
        self.t += 1
        over = self.t >= self.length + self.more
        rewards = {agent: float(np.sum(action_dict[agent])), "a": 0.5}
        observations = (
            self._observed()
            if not over
            else {agent: self._observation(agent) for agent in self.possible_agents}
        )
        terminateds = {"__all__": over and not self.more}
        truncateds = {"a": False, "__all__": bool(over and self.more)}
        return observations, rewards, terminateds, truncateds, {agent: {"acted": self.t}}

    def _observed(self):
        agent = self.possible_agents[self.t % 3]
        return {agent: self._observation(agent)}

    def _observation(self, agent):
        if agent == "z":
            return {"at": np.int64(self.t), "text": "x" * (self.t % 10)}
        if agent == 7:
            return np.full((100, 100, 4), self.t, np.uint8)
        return np.array([self.t / 100, self.more / 100], np.float32)

    def render(self):
        return np.full((2, 2, 3), self.t, np.uint8)


class OneStepEnv(TurnsEnv):
    """Every episode has one step."""

    def __init__(self):
        super().__init__(length=1)

    def reset(self, *, seed=None, options=None):
        return super().reset(options=options)


class MeetingEnv(MultiAgentEnv):
    """A step ends when the steps of all ``number`` environments with this ``folder`` have begun."""

    def __init__(self, folder, number):
        super().__init__()
        self.possible_agents = self.agents = ["a"]
        self.observation_spaces = {"a": Discrete(2)}
        self.action_spaces = {"a": Discrete(2)}
        self.folder, self.number = folder, number

    def reset(self, *, seed=None, options=None):
        return {"a": 0}, {}

    def step(self, action_dict):
        (self.folder / uuid.uuid4().hex).touch()
        until = time.monotonic() + 60
        while len(list(self.folder.iterdir())) < self.number:
            assert time.monotonic() < until, "the others have not begun"
            time.sleep(0.001)
        return {"a": 1}, {"a": 1.0}, {"__all__": False}, {"__all__": False}, {}


class FailingEnv(TwoPoles):  # type: ignore[valid-type, misc]
    """Fails in the third step, unless the file ``config["fixed"]`` exists, which it then makes."""

    def __init__(self, config):
        self.fixed = config["fixed"]
        super().__init__({"num_agents": 2})
        self.t = 0

    def step(self, action_dict):
        self.t += 1
        if self.t == 3 and not self.fixed.exists():
            self.fixed.touch()
            raise RuntimeError("a wheel came off")
        return super().step(action_dict)
