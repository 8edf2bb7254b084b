"""A parallel environment with PettingZoo's methods, whose agents leave one after another."""
# ruff: noqa: ARG002 (signatures are PettingZoo's, whether an environment needs them or not)

from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete


class CountdownEnv:
    """Agent ``i`` of three is terminated by step ``2 + i + late``; ``late`` is the seed, modulo 3.

    Observation: the agent's number and the steps since the reset. Reward: the action plus ten times
    the agent's number. Info: ``{"doubled": 2 * action}``. With ``mixed``, agent 0 has a different
    action space. ``spaces`` replace the spaces of all agents, for tests that do not step.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "countdown"}
    render_mode = None

    def __init__(self, number=3, *, mixed=False, **spaces):
        self.possible_agents = [f"agent_{number}" for number in range(number)]
        self.mixed, self.spaces = mixed, spaces
        self.agents = []
        self.late = 0

    def observation_space(self, agent):
        return self.spaces.get("observation_space", Box(0, np.inf, (2,), np.float32))

    def action_space(self, agent):
        usual = Discrete(5 if not self.mixed or agent == "agent_0" else 6, start=1)
        return self.spaces.get("action_space", usual)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.late = seed % 3
        self.t, self.agents = 0, list(self.possible_agents)
        return {agent: self.observe(agent) for agent in self.agents}, {}

    def step(self, actions):
        assert list(actions) == self.agents
        self.t += 1
        acting = self.agents
        over = {agent: self.t >= 2 + self.number(agent) + self.late for agent in acting}
        self.agents = [agent for agent in acting if not over[agent]]
        return (
            {agent: self.observe(agent) for agent in acting},
            {agent: float(actions[agent] + 10 * self.number(agent)) for agent in acting},
            over,
            dict.fromkeys(acting, False),
            {agent: {"doubled": 2 * int(actions[agent])} for agent in acting},
        )

    def number(self, agent):
        return self.possible_agents.index(agent)

    def observe(self, agent):
        return np.array([self.number(agent), self.t], np.float32)

    def close(self):
        pass


class CurtCountdownEnv(CountdownEnv):
    """A ``CountdownEnv`` whose steps leave out the observations of agent 1 and of agents that end.

    Agents that ended earlier are still listed, with an observation and a reward of zero.
    """

    def step(self, actions):
        ended = [agent for agent in self.possible_agents if agent not in self.agents]
        observations, rewards, over, truncations, infos = super().step(actions)
        observations = {
            agent: observation
            for agent, observation in observations.items()
            if self.number(agent) != 1 and not over[agent]
        }
        return (
            observations | {agent: np.zeros(2, np.float32) for agent in ended},
            rewards | dict.fromkeys(ended, 0.0),
            over | dict.fromkeys(ended, True),
            truncations | dict.fromkeys(ended, False),
            infos,
        )
