"""The agents of a row, their spaces, and the order of their columns."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Space, Tuple
from gymnasium.vector.utils import batch_space

from cartwheel._internal.spaces import has_fixed_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The flags of a row, ``int8`` of shape ``(len(FLAGS), agents)``. ``lives``: the agent is in
#: ``agents`` after the step. ``docs/multi-agent.md`` describes the others.
FLAGS = ("terminated", "truncated", "present", "acted", "lives")


@dataclasses.dataclass(frozen=True)
class Group:
    """Agents with equal spaces, whose values are stacked.

    Attributes:
        key: The key in the row's observation or action.
        space: The space of each of them.
        members: Their places among all agents.
        is_fixed: Whether values have a fixed shape: they are stacked in arrays. Otherwise they are
            in a tuple.
    """

    key: str
    space: Space[Any]
    members: tuple[int, ...]
    is_fixed: bool

    def stacked_space(self) -> Space[Any]:
        """Returns the space of the values of all members."""
        count = len(self.members)
        return batch_space(self.space, count) if self.is_fixed else Tuple([self.space] * count)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The agents of a row and their spaces.

    Attributes:
        agents: The possible agents, in the order of all columns.
        observation_spaces: The observation space of each agent.
        action_spaces: The action space of each agent.
        state_space: The space of the state of the environment, if it is shown.
    """

    agents: tuple[Any, ...]
    observation_spaces: tuple[Space[Any], ...]
    action_spaces: tuple[Space[Any], ...]
    state_space: Space[Any] | None

    def observation_groups(self) -> list[Group]:
        """Groups of agents with equal observation spaces."""
        return _groups(self.observation_spaces)

    def action_groups(self) -> list[Group]:
        """Groups of agents with equal action spaces."""
        return _groups(self.action_spaces)


def _groups(spaces: Sequence[Space[Any]]) -> list[Group]:
    members: dict[int, list[int]] = {}
    for place, space in enumerate(spaces):
        members.setdefault(spaces.index(space), []).append(place)
    return [
        Group(str(key), spaces[first], tuple(group), has_fixed_shape(spaces[first]))
        for key, (first, group) in enumerate(members.items())
    ]


@dataclasses.dataclass(frozen=True)
class AgentsSettings:
    """Keywords of a vector environment that concern the adapter.

    Attributes:
        agents: All agents in their order; ``None`` for those of the environment.
        absent: The value of absent agents in observations with floating-point numbers.
        state: Whether the state of the environment is shown.
        action_repeat: How many times each step repeats its actions.
    """

    agents: tuple[Any, ...] | None = None
    absent: float = 0.0
    state: bool = False
    action_repeat: int = 1


def layout_of(env: Any, settings: AgentsSettings) -> Layout:
    """Reads agents and spaces of an environment.

    Raises:
        ValueError: It does not name its agents, or has no state that is asked for.
    """
    names = tuple(getattr(env, "possible_agents", None) or ())
    if not names:
        raise ValueError(
            f"{type(env).__name__} has no `possible_agents`: set it to the list of all agents that "
            "may appear"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"`possible_agents` has an agent twice: {list(names)}")
    if settings.agents is not None:
        if set(settings.agents) != set(names):
            raise ValueError(
                "`possible_agents` must have the agents that it had before, "
                f"{list(settings.agents)}, got {list(names)}"
            )
        names = settings.agents
    state_space = getattr(env, "state_space", None) if settings.state else None
    if settings.state and state_space is None:
        raise ValueError(f"`state=True` needs `state_space`, which {type(env).__name__} lacks")
    return Layout(
        names,
        _shared([env.observation_space(name) for name in names]),
        _shared([env.action_space(name) for name in names]),
        state_space,
    )


def _shared(spaces: list[Space[Any]]) -> tuple[Space[Any], ...]:
    """Returns one object for equal spaces, which is sent to the caller once.

    ``index`` does not compare an object with itself: bounds of images take milliseconds.
    """
    return tuple(spaces[spaces.index(space)] for space in spaces)
