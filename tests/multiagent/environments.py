"""Environments of several agents with PettingZoo's methods, whose agents come, go and die early."""
# ruff: noqa: ARG002 (signatures are PettingZoo's, whether an environment needs them or not)

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from pettingzoo import AECEnv, ParallelEnv


def rock_paper_scissors(**keywords):
    """The game of PettingZoo, whose module imports pygame."""
    return pytest.importorskip("pettingzoo.classic.rps.rps").parallel_env(**keywords)


class Guests(ParallelEnv[Any, Any, Any]):
    """Agents that come and go at random: with an observation or without, with a flag or without.

    Spaces differ: those of the first agent are nested. An agent that has gone may be listed in the
    results as dead, with a reward that does not count, and may come again.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "guests", "render_modes": ["ansi"]}
    #: Whether an agent may be back in the step that ends it.
    rejoins = False

    def __init__(self, names=("host", "guest_10", "guest_2", 7), limit=9):
        self.possible_agents = list(names)
        self.agents: list[Any] = []
        self.limit = limit
        self.render_mode = "ansi"
        self.rng = np.random.default_rng(0)
        self.t = 0
        self.total = 0.0

    def observation_space(self, agent):
        if agent == self.possible_agents[0]:
            return Dict({"x": Box(-9, 9, (2,), np.float64), "n": Discrete(50)})
        return Box(0, 255, (2, 3), np.uint8)

    def action_space(self, agent):
        if agent == self.possible_agents[0]:
            return Tuple([Discrete(4), Box(-1, 1, (2,), np.float32)])
        return Discrete(5) if agent == self.possible_agents[-1] else MultiDiscrete([3, 2])

    @property
    def state_space(self):
        return Box(-np.inf, np.inf, (2,), np.float64)

    def state(self):
        return np.array([self.t, self.total])

    def render(self):
        return f"{self.t}: {self.agents}"

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.t, self.total = 0, float((options or {}).get("total", 0))
        self.agents = [name for name in self.possible_agents if self.rng.random() < 0.6]
        self.agents = self.agents or self.possible_agents[:1]
        return self.observe_all(self.agents), {name: {"begun": True} for name in self.agents}

    def step(self, actions):
        assert list(actions) == self.agents
        self.t += 1
        before = list(self.agents)
        sums = {name: sum_of(action) for name, action in actions.items()}
        self.total += sum(sums.values())
        terminations = {name: bool(self.rng.random() < 0.15) for name in before}
        truncations = {name: bool(self.rng.random() < 0.1) for name in before}
        vanish = {name for name in before if self.rng.random() < 0.05}
        self.agents = [
            name
            for name in before
            if not (terminations[name] or truncations[name] or name in vanish)
        ]
        if self.agents and self.t < self.limit:
            there = self.agents if self.rejoins else before
            new = [name for name in self.possible_agents if name not in there]
            self.agents += [name for name in new if self.rng.random() < 0.2]
        if self.t >= self.limit:
            truncations = dict.fromkeys(before, True)
            self.agents = []
        silent = {name for name in before if self.rng.random() < 0.2}
        observed = self.observe_all(self.possible_agents)
        for name in silent:
            del observed[name]
        if self.rng.random() < 0.5:
            observed = {name: observed[name] for name in observed if name in self.agents}
        infos = {name: {"sum": sums[name]} for name in before if self.rng.random() < 0.7}
        infos |= {name: {"met": self.t} for name in self.agents if name not in before}
        infos |= {name: {"dead": True} for name in self.possible_agents if name not in infos}
        rewards = dict.fromkeys(self.possible_agents, 99.0) | sums
        return observed, rewards, terminations, truncations, infos

    def observe_all(self, names):
        return {name: self.observe(name) for name in names}

    def observe(self, agent):
        place = self.possible_agents.index(agent)
        if place == 0:
            return {"x": np.array([self.t, self.total]), "n": self.t}
        return np.full((2, 3), 10 * place + self.t, np.uint8)

    def get_state(self):
        return (self.t, self.total, list(self.agents), self.rng.bit_generator.state)

    def set_state(self, state):
        self.t, self.total, agents, self.rng.bit_generator.state = state
        self.agents = list(agents)

    def close(self):
        pass


def sum_of(action):
    """The sum of the numbers of an action; those of several have weights of their places."""
    if isinstance(action, tuple):
        return float(sum((place + 1) * sum_of(part) for place, part in enumerate(action)))
    return float(np.sum(action))


class Walkers(ParallelEnv[Any, Any, Any]):
    """Agents with equal spaces; agent ``i`` is terminated by step ``2 + i + late``.

    ``late`` is the seed, modulo 3. Observation: the agent's number, the steps since the reset and
    the last action. Reward: the action plus ten times the number. The step ``fails_at`` raises.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "walkers"}
    render_mode: Any = None

    def __init__(self, number=3, fails_at=None, order=1):
        self.possible_agents = [f"walker_{number}" for number in range(number)][::order]
        self.agents: list[Any] = []
        self.t = self.late = 0
        self.fails_at = fails_at

    def observation_space(self, agent):
        return Box(-np.inf, np.inf, (3,), np.float32)

    def action_space(self, agent):
        return Box(-1, 1, (1,), np.float32)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.late = seed % 3
        self.t, self.agents = 0, list(self.possible_agents)
        return {name: self.observe(name, 0) for name in self.agents}, {}

    def step(self, actions):
        self.t += 1
        if self.fails_at == self.t:
            self.fails_at = None
            raise OSError("tripped")
        acting = list(self.agents)
        over = {name: self.t >= 2 + self.number(name) + self.late for name in acting}
        self.agents = [name for name in acting if not over[name]]
        return (
            {name: self.observe(name, actions[name][0]) for name in acting},
            {name: float(actions[name][0]) + 10 * self.number(name) for name in acting},
            over,
            dict.fromkeys(acting, False),
            # A nested info, whose key is a number, as keys may be.
            {name: {"t": self.t, 7: {"t": self.t}} for name in acting},
        )

    def number(self, agent):
        return int(agent.rpartition("_")[2])

    def observe(self, agent, action):
        return np.array([self.number(agent), self.t, action], np.float32)

    def close(self):
        pass


class Switches(Walkers):
    """The actions of walkers are switches, of one byte each."""

    def action_space(self, agent):
        return MultiBinary(2)


class Stated(Walkers):
    """Its state has parts."""

    state_space: Any = Dict({"t": Box(0, 99, (1,), np.float64), "late": Discrete(99)})

    def state(self):
        return {"t": np.array([self.t], np.float64), "late": self.late}


class Listed(Walkers):
    """Observations are lists of integers, in a space of bytes."""

    def observation_space(self, agent):
        return Box(0, 255, (3,), np.uint8)

    def observe(self, agent, action):
        return [self.number(agent), self.t, 7]


class Counted(Walkers):
    """Observations are the steps since the reset, counted from 1. The space excludes zero."""

    def observation_space(self, agent):
        return Discrete(9, start=1)

    def observe(self, agent, action):
        return 1 + self.t


class Talkers(ParallelEnv[Any, Any, Any]):
    """Two agents that say text; the second leaves first."""

    metadata: ClassVar[dict[str, Any]] = {"name": "talkers"}
    render_mode: Any = None
    possible_agents: ClassVar[list[Any]] = ["a", "b"]

    def __init__(self):
        self.agents: list[Any] = []
        self.t = 0

    def observation_space(self, agent):
        return Text(8) if agent == "a" else MultiBinary(2)

    def action_space(self, agent):
        return Text(8)

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, ["a", "b"]
        return {"a": "hello", "b": np.zeros(2, np.int8)}, {}

    def step(self, actions):
        self.t += 1
        acting = list(self.agents)
        over = {name: self.t >= (4 if name == "a" else 2) for name in acting}
        self.agents = [name for name in acting if not over[name]]
        observed = {"a": actions["a"][:8], "b": np.array([1, self.t % 2], np.int8)}
        return (
            {name: observed[name] for name in acting},
            {name: float(len(actions[name])) for name in acting},
            over,
            dict.fromkeys(acting, False),
            {"a": {"said": actions["a"]}},
        )

    def close(self):
        pass


class Duel(AECEnv):
    """Two agents that take turns and take away 1 or 2; who takes the last of seven wins."""

    metadata: ClassVar[dict[str, Any]] = {"name": "duel", "is_parallelizable": False}
    render_mode: Any = None

    def __init__(self):
        super().__init__()
        self.possible_agents = ["first", "second"]

    def observation_space(self, agent):
        return Dict({"observation": Box(0, 9, (1,), np.int64), "action_mask": MultiBinary(2)})

    def action_space(self, agent):
        return Discrete(2)

    def observe(self, agent):
        mask = np.array([self.left >= 1, self.left >= 2], np.int8)
        return {"observation": np.array([self.left]), "action_mask": mask}

    def reset(self, seed=None, options=None):
        self.left = 7
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {name: {} for name in self.agents}
        self.agent_selection = "first"

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0
        self.rewards = dict.fromkeys(self.agents, 0)
        self.left -= min(int(action) + 1, self.left)
        other = "second" if agent == "first" else "first"
        if self.left == 0:
            self.rewards = {agent: 1, other: -1}
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()

    def close(self):
        pass


class Anonymous(Walkers):
    """An environment that does not name its agents."""

    def __init__(self):
        super().__init__()
        self.possible_agents = []


class Crowd(Walkers):
    """An agent appears that is not among the possible ones."""

    def step(self, actions):
        results = super().step(actions)
        self.agents.append("stranger")
        return results


class Infoless(Walkers):
    """Its reset returns observations alone."""

    def reset(self, seed=None, options=None):
        return super().reset(seed, options)[0]


class Done(Walkers):
    """Its steps have one flag, as those of old environments."""

    def step(self, actions):
        observations, rewards, terminations, _, infos = super().step(actions)
        return observations, rewards, terminations, infos


class Empty(Walkers):
    """No agent is there after a reset."""

    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.agents = []
        return {}, {}


class Misshapen(Walkers):
    """Observations of walker 1 are longer than those of its space."""

    def observe(self, agent, action):
        observation = super().observe(agent, action)
        return np.append(observation, 0) if self.number(agent) == 1 else observation


class Loose(Walkers):
    """Observations are lists or have another dtype than their space; rewards have other types."""

    def observe(self, agent, action):
        observation = super().observe(agent, action)
        kinds = [np.ndarray.tolist, np.float64, np.float32]
        return kinds[self.number(agent) % 3](observation)

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        kinds = [int, np.float32, np.array]
        rewards = {name: kinds[self.number(name) % 3](value) for name, value in rewards.items()}
        return observations, rewards, *rest
