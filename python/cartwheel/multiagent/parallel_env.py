"""One environment of a batch as a parallel environment of PettingZoo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import create_empty_array
from pettingzoo import ParallelEnv

from cartwheel._internal import nested

if TYPE_CHECKING:
    from gymnasium.spaces import Space

    from cartwheel.multiagent.base import AgentsBase


class ParallelRow(ParallelEnv):
    """The only environment of a :class:`~cartwheel.ParallelVectorEnv`, with PettingZoo's methods.

    Agents are in the order of ``possible_agents``.

    Attributes:
        envs: The vector environment.
    """

    def __init__(self, envs: AgentsBase) -> None:
        """Checks number and mode; see :meth:`cartwheel.ParallelVectorEnv.as_parallel_env`."""
        if envs.num_envs != 1:
            raise ValueError(
                f"`as_parallel_env` needs one environment, got num_envs={envs.num_envs}."
            )
        if envs.autoreset_mode != AutoresetMode.DISABLED:
            raise ValueError(
                "`as_parallel_env` needs autoreset_mode='disabled', as its caller resets the "
                f"environment, got {envs.autoreset_mode.name.lower()!r}."
            )
        self.envs = envs
        self.possible_agents = list(envs.possible_agents)
        self.agents: list[Any] = []
        self.metadata = dict(envs.metadata)
        self.render_mode = envs.render_mode
        self._spaces = envs.single_observation_space, envs.single_action_space
        #: Actions of absent agents, which are ignored.
        self._blank = {
            agent: create_empty_array(space, 1) for agent, space in envs.single_action_space.items()
        }

    def observation_space(self, agent: Any) -> Space[Any]:
        """Returns the observation space of an agent, always the same object."""
        return self._spaces[0][agent]

    def action_space(self, agent: Any) -> Space[Any]:
        """Returns the action space of an agent, always the same object."""
        return self._spaces[1][agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, dict[str, Any]]]:
        """Resets the environment; returns observations and infos."""
        columns = self.envs._reset_columns(seed, options)
        return self._shown(columns)[:2]

    def step(self, actions: dict[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Steps the agents in ``agents``.

        Raises:
            ValueError: The action of one of them is missing; nothing was stepped.
        """
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ValueError(
                f"`actions` must have one of each agent in `agents`: {missing} have none."
            )
        batch = {
            agent: nested.stack(space, [actions[agent]]) if agent in actions else self._blank[agent]
            for agent, space in self._spaces[1].items()
        }
        columns = self.envs._step_columns(batch, None)
        observations, infos, known = self._shown(columns)
        by_agent = enumerate(self.possible_agents)
        places = {agent: place for place, agent in by_agent if agent in known}
        rewards = {agent: float(columns.rewards[place, 0]) for agent, place in places.items()}
        flags = tuple(
            {agent: bool(flag[place, 0]) for agent, place in places.items()}
            for flag in (columns.terminated, columns.truncated)
        )
        return observations, rewards, *flags, infos

    def _shown(self, columns: Any) -> tuple[dict[Any, Any], dict[Any, dict[str, Any]], set[Any]]:
        """Returns observations, infos, and the agents that acted or live."""
        names, batches = self.possible_agents, self.envs._batches
        # None where a limit or a failure ended the episode of agents that the environment lists.
        self.agents = [name for place, name in enumerate(names) if batches.lives[place, 0]]
        is_known = (columns.acted | columns.lives)[:, 0]
        known = {name for place, name in enumerate(names) if is_known[place]}
        observations, infos = {}, {}
        for place, name in enumerate(names):
            if columns.present[place, 0]:
                batch = batches.observations(columns.observations, place)
                (observations[name],) = nested.rows(self._spaces[0][name], batch, 1)
            if name in known:
                infos[name] = _of_row(columns.agent_infos.get(place, {}))
        return observations, infos, known

    def render(self) -> Any:
        """Renders the environment."""
        return self.envs.render()[0]

    def state(self) -> Any:
        """Returns the state of the environment, by its own method."""
        return self.envs.call("state")[0]

    def close(self) -> None:
        """Closes the environment."""
        self.envs.close()


def _of_row(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the infos of the only row of a batch."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        if f"_{key}" in infos and infos[f"_{key}"][0]:
            found[key] = _of_row(value) if isinstance(value, dict) else value[0]
    return found
