"""Multi-agent environments of RLlib as rows, in workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
from gymnasium.spaces import Space, Tuple
from gymnasium.vector.utils import batch_space, create_empty_array, iterate
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

if TYPE_CHECKING:
    from collections.abc import Callable

#: The key of infos with everything of a row except observations.
REST = "agents"
#: Agents with an observation, rewards, terminateds, truncateds and infos, the last four by agent.
Rest: TypeAlias = "tuple[list[Any], dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any]]"


class AgentsEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A multi-agent environment as an environment of Gymnasium.

    Its observation is a tuple with the observation of each possible agent, so that large ones are
    written into shared memory; it is zeros for agents without one. Everything else is in the info
    ``REST``, as returned by the environment. Its action is the dictionary of actions.
    """

    def __init__(self, env: Any) -> None:
        """Wraps a ``MultiAgentEnv``, or wrappers around one."""
        super().__init__(env)
        agents: Any = env.unwrapped
        self._steps: Any = env  # Gymnasium's types are those of one agent
        self.agent_ids = in_order(agents.possible_agents)
        self.agent_spaces = {
            agent: (agents.get_observation_space(agent), agents.get_action_space(agent))
            for agent in agents.possible_agents
        }
        self.observation_space = Tuple([self.agent_spaces[agent][0] for agent in self.agent_ids])
        self.action_space = ActionsByAgent()
        self._blanks: dict[Any, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Rest]]:
        """Resets the environment. After an episode its agents have the reward 0, as in RLlib."""
        observations, infos = self._steps.reset(seed=seed, options=options)
        agents = self._steps.unwrapped.possible_agents
        over = {**dict.fromkeys(agents, False), "__all__": False}
        rest = (list(observations), dict.fromkeys(agents, 0.0), over, dict(over), infos)
        return self._row(observations), {REST: rest}

    def step(
        self, action: dict[Any, Any]
    ) -> tuple[tuple[Any, ...], float, bool, bool, dict[str, Rest]]:
        """Steps the environment. The reward is in the info."""
        observations, rewards, terminateds, truncateds, infos = self._steps.step(action)
        terminated = bool(terminateds["__all__"])
        truncated = bool(truncateds.get("__all__", False))
        rest = (list(observations), rewards, terminateds, truncateds, infos)
        return self._row(observations), 0.0, terminated, truncated, {REST: rest}

    def _row(self, observations: dict[Any, Any]) -> tuple[Any, ...]:
        return tuple(
            observations[agent] if agent in observations else self._blank(agent)
            for agent in self.agent_ids
        )

    def _blank(self, agent: Any) -> Any:
        if agent not in self._blanks:
            space = self.agent_spaces[agent][0]
            empty: Any = create_empty_array(space, n=1)
            self._blanks[agent] = next(iter(iterate(batch_space(space, 1), empty)))
        return self._blanks[agent]


class ActionsByAgent(Space[Any]):
    """Actions of the agents that act: dictionaries by agent."""

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a dictionary."""
        return isinstance(x, dict)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Returns actions of no agent."""
        del mask, probability
        return {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionsByAgent)

    __hash__ = None  # type: ignore[assignment]


def in_order(agents: Any) -> list[Any]:
    """Returns agents in an order that is the same in every process, unlike that of a set."""
    return sorted(agents, key=repr)


def make_agents_env(env_fn: Callable[[], Any], *, check: bool) -> AgentsEnv:
    """Makes an environment and wraps it.

    Args:
        env_fn: Makes a ``MultiAgentEnv`` or a parallel environment of PettingZoo, which gets
            RLlib's own wrapper.
        check: Whether RLlib's checks of multi-agent environments are made, which reset and step it.

    Raises:
        TypeError: ``env_fn`` makes something else.
        ValueError: The environment does not name its possible agents, or RLlib's checks fail.
    """
    env = env_fn()
    if not isinstance(env, gym.Env) and hasattr(env, "possible_agents"):
        if hasattr(env, "agent_iter"):
            raise TypeError(
                f"{env!r} is a turn-based environment of PettingZoo: wrap it in "
                "ray.rllib.env.wrappers.pettingzoo_env.PettingZooEnv."
            )
        env = ParallelPettingZooEnv(env)
    agents = getattr(env, "unwrapped", None)
    if not isinstance(agents, MultiAgentEnv):
        raise TypeError(
            f"multi-agent environments must be a ray.rllib.env.multi_agent_env.MultiAgentEnv or a "
            f"parallel environment of PettingZoo, got {env!r} from {env_fn!r}."
        )
    if not agents.possible_agents:
        raise ValueError(f"{agents!r} must name all its agents in `possible_agents`.")
    if check:
        check_multiagent_environments(agents)
    return AgentsEnv(env)
