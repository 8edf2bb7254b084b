"""Batches by group of agents: arrays with a dimension of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.spaces import has_fixed_shape
from cartwheel.multiagent.actions import check_agents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions, Seeds
    from cartwheel.multiagent.base import AgentsBase
    from cartwheel.multiagent.batches import Columns

    #: Observations, rewards, terminations and truncations by group, and infos.
    Step: TypeAlias = tuple[
        dict[str, Any],
        dict[str, NDArray[np.float64]],
        dict[str, NDArray[np.bool_]],
        dict[str, NDArray[np.bool_]],
        dict[str, Any],
    ]


class Groups:
    """Steps a :class:`~cartwheel.ParallelVectorEnv` with arrays by group of agents.

    Each array has the shape ``(num_envs, agents, ...)``; the agents of a group are in its order.
    Observations of a group are a view where its agents are neighbors in ``possible_agents``, or at
    equal distances. ``infos["present"]``, ``infos["acted"]`` and ``infos["_final_obs"]`` have the
    shape ``(num_envs, agents)``, and ``infos["final_obs"]`` is by group, too. Infos of agents, and
    ``infos["final_info"]``, are by agent.

    Attributes:
        envs: The vector environment.
        groups: The agents of each group.
        single_observation_spaces: The observation space of one agent of each group.
        single_action_spaces: The action space of one agent of each group.
        observation_spaces: The space of the observations of each group.
        action_spaces: The space of the actions of each group.
    """

    #: What errors advise, because this is not a vector environment.
    _vector_env_instead = (
        "these are groups of agents: pass their ParallelVectorEnv, `envs.envs`, or its `as_rows()` "
        "where a row for each agent is needed"
    )

    def __init__(self, envs: AgentsBase, groups: Mapping[str, Sequence[Any]]) -> None:
        """Checks the groups; see :meth:`cartwheel.ParallelVectorEnv.by_group`."""
        self.envs = envs
        self.groups: dict[str, list[Any]] = _checked(groups, envs.possible_agents)
        self.single_observation_spaces = {
            name: common_space(
                envs.single_observation_space, members, "observation", f"the group {name!r}"
            )
            for name, members in self.groups.items()
        }
        self.single_action_spaces = {
            name: common_space(envs.single_action_space, members, "action", f"the group {name!r}")
            for name, members in self.groups.items()
        }
        self.observation_spaces = self._batched(self.single_observation_spaces)
        self.action_spaces = self._batched(self.single_action_spaces)
        places = {agent: place for place, agent in enumerate(envs.possible_agents)}
        self._places = {
            name: [places[agent] for agent in members] for name, members in self.groups.items()
        }

    def __repr__(self) -> str:
        return f"Groups({self.groups}, {self.envs!r})"

    def _batched(self, spaces: dict[str, Space[Any]]) -> dict[str, Space[Any]]:
        rows = self.envs.batch_size
        return {
            name: batch_space(batch_space(space, len(self.groups[name])), rows)
            for name, space in spaces.items()
        }

    def reset(
        self, *, seed: Seeds = None, options: ResetOptions = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Resets environments, as :meth:`cartwheel.ParallelVectorEnv.reset`.

        Args:
            seed: Seeds of the rows.
            options: Options of the rows.

        Returns:
            Observations by group, and infos.
        """
        columns = self.envs._reset_columns(seed, options)
        return self._observations(columns.observations), self._infos(columns)

    def step(self, actions: dict[str, Any], env_index: Any = None) -> Step:
        """Steps environments, as :meth:`cartwheel.ParallelVectorEnv.step`.

        Args:
            actions: For each group the actions ``(num_envs, agents, ...)``; those of absent agents
                are ignored.
            env_index: Row numbers; by default all rows.

        Returns:
            Observations, rewards, terminations and truncations by group, and infos.

        Raises:
            TypeError: ``actions`` is not a dictionary; nothing was stepped.
            ValueError: A group is missing or unknown, or its actions have another shape; nothing
                was stepped.
        """
        return self._stepped(self.envs._step_columns(self._actions_by_agent(actions), env_index))

    def step_async(self, actions: dict[str, Any], env_index: Any = None) -> None:
        """Begins a step with the arguments of :meth:`step`; :meth:`step_wait` returns its result.

        Raises:
            Exception: As :meth:`step`.
        """
        self.envs._begin_step(self._actions_by_agent(actions), env_index)

    def step_wait(self, timeout: float | None = None) -> Step:
        """Waits for a step: of :meth:`step_async`, or one that has timed out or was interrupted.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            The same five values as :meth:`step`.

        Raises:
            Exception: As :meth:`cartwheel.VectorEnv.step_wait`.
        """
        return self._stepped(self.envs._wait_columns(timeout))

    def _actions_by_agent(self, actions: dict[str, Any]) -> dict[Any, Any]:
        check_agents("actions", actions, tuple(self.groups), "groups")
        by_agent: dict[Any, Any] = {}
        for name, members in self.groups.items():
            values = _as_arrays(f"actions[{name!r}]", actions[name], len(members))
            for at, agent in enumerate(members):
                by_agent[agent] = nested.at(values, (slice(None), at))
        return by_agent

    def _stepped(self, columns: Columns) -> Step:
        return (
            self._observations(columns.observations),
            self._by_group(columns.rewards),
            self._by_group(columns.terminated),
            self._by_group(columns.truncated),
            self._infos(columns),
        )

    def action_masks(self, env_index: Any = None) -> dict[str, NDArray[np.bool_]]:
        """Returns the masks of actions of groups whose actions are discrete.

        Args:
            env_index: As for :meth:`cartwheel.ParallelVectorEnv.action_masks`.

        Returns:
            ``bool`` of shape ``(rows, agents, actions)`` for each of these groups.

        Raises:
            ValueError: As for :meth:`cartwheel.ParallelVectorEnv.action_masks`.
        """
        masks = self.envs.action_masks(env_index)
        return {
            name: np.stack([masks[agent] for agent in members], axis=1)
            for name, members in self.groups.items()
            if members[0] in masks
        }

    def _by_group(self, columns: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {
            name: np.ascontiguousarray(columns[places].T) for name, places in self._places.items()
        }

    def _observations(self, groups: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.envs._batches.stacked(groups, places)
            for name, places in self._places.items()
        }

    def _infos(self, columns: Columns) -> dict[str, Any]:
        infos = self.envs._infos(columns)
        infos["present"] = self._by_group(columns.present)
        infos["acted"] = self._by_group(columns.acted)
        if columns.finals is not None:
            infos["final_obs"] = self._observations(columns.finals.observations)
            infos["_final_obs"] = self._by_group(columns.finals.present)
        return infos

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


def _as_arrays(name: str, actions: Any, count: int) -> Any:
    """Returns actions of a group as arrays, which have a dimension of its agents."""

    def converted(array: Any) -> NDArray[Any]:
        own = nested.as_array(name, array)
        if own.ndim < 2 or own.shape[1] != count:
            raise ValueError(
                f"`{name}` must have the shape (num_envs, {count}, ...) for the {count} agents of "
                f"the group, got {own.shape}."
            )
        return own

    return nested.apply(converted, actions)


def _checked(groups: Any, agents: list[Any]) -> dict[str, list[Any]]:
    is_lists = isinstance(groups, dict) and all(
        isinstance(members, list | tuple) for members in groups.values()
    )
    if not is_lists:
        raise TypeError(
            f"`groups` must be a dictionary of lists of the agents {agents}, got {groups!r}."
        )
    members = [agent for found in groups.values() for agent in found]
    faults = {
        "are unknown": [agent for agent in members if agent not in agents],
        "are in no group": [agent for agent in agents if agent not in members],
        "are in several places": sorted(
            {agent for agent in members if members.count(agent) > 1}, key=str
        ),
    }
    for fault, found in faults.items():
        if found:
            raise ValueError(f"each of the agents {agents} must be in one group: {found} {fault}.")
    empty = [name for name, found in groups.items() if not found]
    if empty:
        raise ValueError(f"the groups {empty} have no agents.")
    return {name: list(found) for name, found in groups.items()}


def common_space(
    spaces: Mapping[Any, Space[Any]],
    members: Iterable[Any],
    what: str,
    whose: str,
    advice: str = "",
) -> Any:
    """Returns the space of agents that share one.

    Args:
        spaces: The spaces of all agents.
        members: The agents.
        what: The kind of space, for errors, as what follows.
        whose: What needs it.
        advice: What to do if they differ.

    Raises:
        ValueError: Their spaces differ, or have no fixed shape.
    """
    first_agent, *others = members
    first = spaces[first_agent]
    for agent in others:
        if spaces[agent] != first:
            raise ValueError(
                f"{whose} needs agents with the same {what} space: {first_agent!r} has {first}, "
                f"{agent!r} has {spaces[agent]}.{advice}"
            )
    if not has_fixed_shape(first):
        raise ValueError(f"{whose} needs {what}s of fixed shape, got {first}.")
    return first
