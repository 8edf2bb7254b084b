"""The vector environment of the rows of a :class:`~cartwheel.ParallelVectorEnv`."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.spaces import has_fixed_shape
from cartwheel.multiagent.action_masks import check_mask_key
from cartwheel.multiagent.batches import AgentBatches, check_names
from cartwheel.vector.vector_env import VectorEnv
from cartwheel.workers.envs.agents_env import MakesAgentsEnv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnasium.spaces import Space

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.workers.envs.agents_layout import AgentsSettings, Layout

#: Final observations are columns where a row has at most so many bytes. Columns are copied in each
#: step, and larger observations in the steps alone in which rows end.
MAX_DENSE_BYTES = 1 << 18


class OtherOrderError(Exception):
    """Rows list the same agents in different orders; the layout of row 0 is the argument."""


class AgentsPool(VectorEnv[Any, Any]):
    """Rows with several agents: observations, actions and infos of the adapter in the workers.

    Attributes:
        layout: The agents and their spaces.
        mask_key: The key of masks of actions by agent.
    """

    _class_name = "ParallelVectorEnv"
    layout: Layout

    def __init__(
        self, env_fns: Sequence[EnvFn], mask_key: str | None = None, **keywords: Any
    ) -> None:
        """Starts the workers; ``keywords`` are those of a :class:`~cartwheel.VectorEnv`."""
        self.mask_key = mask_key
        super().__init__(env_fns, **keywords)

    @property
    def absent(self) -> float:
        """The value of absent agents in observations with floating-point numbers."""
        makes: Any = self.env_fns[0]
        return float(makes.settings.absent)

    def _check_descriptions(self, descriptions: list[dict[str, Any]]) -> None:
        layouts: list[Layout] = [one for found in descriptions for one in found["layouts"]]
        first = self.layout = layouts[0]
        check_names(first.agents)
        for row, layout in enumerate(layouts):
            _check_row(row, layout, first)
        if any(layout.agents != first.agents for layout in layouts):
            raise OtherOrderError(first)
        check_mask_key(self.mask_key, first)
        spaces = [*first.observation_spaces]
        if first.state_space is not None:
            spaces.append(first.state_space)
        if (
            self.autoreset_mode == AutoresetMode.SAME_STEP
            and all(map(has_fixed_shape, spaces))
            and sum(map(_num_bytes, spaces)) <= MAX_DENSE_BYTES
        ):
            self.final_obs = "dense"
        super()._check_descriptions(descriptions)

    @property
    def description(self) -> dict[str, Any]:
        """The description of the environments in a recording."""
        name = self.metadata.get("name") or self._class_name
        return {"env_id": str(name), "env_kwargs": {}, "max_episode_steps": None}

    def batches(self) -> AgentBatches:
        """Returns what converts the batches."""
        return AgentBatches(self.layout, self.num_envs, self.autoreset_mode, self.mask_key)


def open_pool(
    env_fns: Sequence[Any],
    settings: AgentsSettings,
    keywords: dict[str, Any],
    action_mask: str | None,
) -> AgentsPool:
    """Starts the workers; once more if rows list their agents in another order than row 0."""

    def start(settings: AgentsSettings) -> AgentsPool:
        makes = [MakesAgentsEnv(env_fn, settings) for env_fn in env_fns]
        return AgentsPool(makes, action_mask, action_mask=None, **keywords)

    try:
        return start(settings)
    except OtherOrderError as error:
        agents = error.args[0].agents
    return start(dataclasses.replace(settings, agents=agents))


def _num_bytes(space: Space[Any]) -> int:
    """Returns the size of a value of a space whose values are arrays."""
    parts = nested.leaves(space)
    return sum(math.prod(part.shape or ()) * np.dtype(part.dtype).itemsize for part in parts)


def _check_row(row: int, layout: Layout, first: Layout) -> None:
    if layout is first:
        return
    if set(layout.agents) != set(first.agents):
        raise ValueError(
            "all environments must have the same `possible_agents`: row 0 has "
            f"{list(first.agents)}, row {row} has {list(layout.agents)}."
        )
    for name, own, other in (
        ("observation_space", layout.observation_spaces, first.observation_spaces),
        ("action_space", layout.action_spaces, first.action_spaces),
    ):
        by_agent = dict(zip(layout.agents, own, strict=True))
        for agent, space in zip(first.agents, other, strict=True):
            if by_agent[agent] != space:
                raise ValueError(
                    f"the {name} of agent {agent!r} must be the same in all environments: it is "
                    f"{space} in row 0 and {by_agent[agent]} in row {row}."
                )
    if layout.state_space != first.state_space:
        raise ValueError(
            f"`state_space` must be the same in all environments: it is {first.state_space} in row "
            f"0 and {layout.state_space} in row {row}."
        )
