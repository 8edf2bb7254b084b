"""Environments of several agents: ``ParallelVectorEnv`` against bare loops over PettingZoo's.

Needs MPE2, and pygame with pymunk for pistonball (``tests/requirements/zoo.txt``). The loops step
each environment by its own methods, on all cores at once.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check
from cartwheel.bench.ceiling import Ceiling
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.literals import Mode


class Cheap:
    """Three agents and next to no work, for the cost of the vector environment itself."""

    metadata: dict[str, Any] = {"name": "cheap"}  # noqa: RUF012 - as PettingZoo's
    render_mode = None

    def __init__(self) -> None:
        """Makes the spaces."""
        self.possible_agents = ["agent_0", "agent_1", "agent_2"]
        self.agents: list[str] = []
        self._observation_space = gym.spaces.Box(-1, 1, (18,), np.float32)
        self._action_space = gym.spaces.Discrete(5)
        self._observation = np.zeros(18, np.float32)
        self._t = 0

    def observation_space(self, agent: str) -> Any:  # noqa: ARG002 - PettingZoo's signature
        """Returns the only space."""
        return self._observation_space

    def action_space(self, agent: str) -> Any:  # noqa: ARG002 - PettingZoo's signature
        """Returns the only space."""
        return self._action_space

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:  # noqa: ARG002
        """Returns the only observation, of each agent."""
        self._t, self.agents = 0, list(self.possible_agents)
        return dict.fromkeys(self.agents, self._observation), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[Any, ...]:
        """Ends after a hundred steps."""
        self._t += 1
        acting, over = list(actions), self._t >= 100
        self.agents = [] if over else acting
        return (
            dict.fromkeys(acting, self._observation),
            dict.fromkeys(acting, 1.0),
            dict.fromkeys(acting, False),
            dict.fromkeys(acting, over),
            {name: {} for name in acting},
        )

    def close(self) -> None:
        """Does nothing."""


class Bare(gym.Env[Any, Any]):
    """An environment of several agents as the loop of a :class:`Ceiling` steps it."""

    observation_space = gym.spaces.Discrete(1)

    def __init__(self, make: Callable[[], Any]) -> None:
        """Makes the environment."""
        self.env = make()
        agents = self.env.possible_agents
        self.action_space = gym.spaces.Dict(
            OrderedDict((agent, self.env.action_space(agent)) for agent in agents)
        )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Resets it."""
        self.env.reset(seed=seed, options=options)
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the agents that live."""
        self.env.step({agent: action[agent] for agent in self.env.agents})
        return 0, 0.0, not self.env.agents, False, {}


def make_env(module: str, keywords: dict[str, Any]) -> Any:
    """Makes an environment; its module may warn that names of it are old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module).parallel_env(**keywords)


def ours(mode: Mode) -> Contender:
    """``ParallelVectorEnv`` with worker processes."""

    def build(env_fns: Sequence[Any]) -> VectorRunner:
        envs: Any = cartwheel.ParallelVectorEnv(env_fns, executor="process", autoreset_mode=mode)
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    return Contender(f"cartwheel {mode}", build)


BARE = Contender(
    "bare loops",
    lambda env_fns: Ceiling([functools.partial(Bare, env_fn) for env_fn in env_fns]),
)
SPREAD = functools.partial(make_env, "mpe2.simple_spread_v3", {})
PISTONBALL = functools.partial(make_env, "pettingzoo.butterfly.pistonball_v6", {})

if __name__ == "__main__":
    next_step, same_step = ours("next_step"), ours("same_step")
    check(
        "simple_spread, three agents",
        SPREAD,
        {16: [Claim(next_step, BARE, 0.9), Claim(same_step, BARE, 0.9)]},
    )
    check(
        "pistonball, twenty agents with images",
        PISTONBALL,
        {8: [Claim(next_step, BARE, 0.95), Claim(same_step, BARE, 0.92)]},
    )
    check("three agents that do nothing", Cheap, {16: [Claim(next_step, BARE, 0.0)]})
