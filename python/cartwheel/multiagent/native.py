"""Native environments that name their agents, as rows of a :class:`~cartwheel.ParallelVectorEnv`.

A row of theirs has the agents as the first dimension of every leaf, or the parts of a ``Dict`` are
called as they are. ``cartwheel::Env::agents``, in Rust, and ``cartwheel_description``, in C,
describe the parts of the observations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_autoreset_mode
from cartwheel.multiagent.action_masks import check_mask_key
from cartwheel.multiagent.base import REFUSED_KEYWORDS
from cartwheel.multiagent.batches import AgentBatches, check_names, of_places
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.vector.action_masks import as_mask_key
from cartwheel.workers.envs.agents_layout import FLAGS, Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gymnasium.envs.registration import EnvSpec
    from numpy.typing import NDArray

#: Keywords of native vector environments that those of several agents do not have, and why.
_REFUSED = REFUSED_KEYWORDS | {
    "action_repeat": "an agent that ends before the last repetition would lose its observation and "
    "its reward, so repeat actions in the environment",
}


class NativeAgentsPool(NativeVectorEnv[Any, Any]):
    """Native rows with several agents.

    Attributes:
        layout: The agents and their spaces.
        named: Whether observations, and whether actions, are dictionaries by agent. Otherwise
            agents are a dimension.
        mask_key: The key of masks of actions by agent.
        absent: The value of absent agents in observations: environments write it themselves.
    """

    _class_name = "ParallelVectorEnv"
    layout: Layout
    named: tuple[bool, bool]
    absent = 0.0

    def __init__(self, env_id: str | EnvSpec, num_envs: int, **keywords: Any) -> None:
        """Makes the environments; see :meth:`cartwheel.ParallelVectorEnv.native`."""
        for name, why in _REFUSED.items():
            if name in keywords:
                raise TypeError(f"`{name}` is not a keyword of ParallelVectorEnv.native: {why}.")
        self.mask_key = as_mask_key(keywords.pop("action_mask", "action_mask"))
        mode = as_autoreset_mode(keywords.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        if mode == AutoresetMode.SAME_STEP:
            keywords["final_obs"] = "dense"
        super().__init__(env_id, num_envs, action_mask=None, **keywords)
        try:
            self.layout = self._read_layout()
            check_mask_key(self.mask_key, self.layout)
        except BaseException:
            self.close(terminate=True)
            raise

    def _read_layout(self) -> Layout:
        """Returns the agents and the spaces of each."""
        agents = tuple(self._callbacks.envs.agents())
        if not agents:
            raise ValueError(
                f"{self._shown_id} does not name its agents, so it is an environment of one: "
                "NativeVectorEnv steps it."
            )
        check_names(agents)
        whole, count = self.single_observation_space, len(agents)
        parts: Mapping[str, Space[Any]] = whole.spaces if isinstance(whole, Dict) else {}
        flags, rewards = MultiBinary((len(FLAGS), count)), parts.get("rewards")
        is_whole = (
            "agents" in parts
            and parts.get("flags") == flags
            and isinstance(rewards, Box)
            and rewards.shape == (count,)
            and rewards.dtype == np.float64
        )
        if not is_whole:
            raise ValueError(
                f"{self._shown_id} names the agents {list(agents)}, so its observation space must "
                f"be a Dict with `agents`, `flags` of {flags} and `rewards`, a Box of float64 and "
                f"shape ({count},), got {whole}."
            )
        observations, actions = parts["agents"], self.single_action_space
        self.named = (_is_named(observations, agents), _is_named(actions, agents))
        return Layout(
            agents,
            self._of_agents("observation", observations, agents),
            self._of_agents("action", actions, agents),
            parts.get("state"),
        )

    def _of_agents(
        self, what: str, space: Space[Any], agents: tuple[str, ...]
    ) -> tuple[Space[Any], ...]:
        if _is_named(space, agents):
            named: Any = space
            return tuple(named[name] for name in agents)
        count = len(agents)
        try:
            return tuple(_of_agent(space, place, count) for place in range(count))
        except ValueError as error:
            raise ValueError(
                f"the {what}s of agents of {self._shown_id} need a Dict with the keys "
                f"{list(agents)}, or {error}"
            ) from None

    @property
    def processes(self) -> list[Any]:
        """None: threads step native environments."""
        return []

    def batches(self) -> AgentBatches:
        """Returns what converts the batches."""
        return NativeBatches(self)


class NativeBatches(AgentBatches):
    """Converts batches of native rows."""

    def __init__(self, pool: NativeAgentsPool) -> None:
        super().__init__(pool.layout, pool.num_envs, pool.autoreset_mode, pool.mask_key)
        self._named = pool.named

    def groups_of(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns the observations of each group: views, unless agents must be put together."""
        shown, names = batch["agents"], self.layout.agents
        if not self._named[0]:
            return {group.key: of_places(shown, group.members) for group in self.groups}
        groups = {}
        for group in self.groups:
            values = [shown[names[place]] for place in group.members]
            groups[group.key] = _stacked(values) if group.is_fixed else tuple(values)
        return groups

    def rewards_of(self, batch: dict[str, Any], rewards: Any) -> NDArray[np.float64]:
        """Returns the rewards that the environments show."""
        del rewards  # those of the rows
        shown: NDArray[np.float64] = batch["rewards"]
        return shown

    def actions(self, actions: Any, count: int) -> Any:
        """Returns the actions of the rows."""
        groups = super().actions(actions, count)
        if not self._named[1] and len(groups) == 1:
            return groups["0"]
        names = self.layout.agents
        values = [super(NativeBatches, self).actions_of(groups, at) for at in range(len(names))]
        return dict(zip(names, values, strict=True)) if self._named[1] else _stacked(values)

    def actions_of(self, batch: Any, place: int) -> Any:
        """Returns the actions of an agent."""
        if self._named[1]:
            return batch[self.layout.agents[place]]
        return nested.at(batch, (slice(None), place))


def _is_named(space: Space[Any], agents: tuple[str, ...]) -> bool:
    return isinstance(space, Dict) and space.spaces.keys() == set(agents)


def _stacked(values: list[Any]) -> Any:
    """Returns the values ``(n, members, ...)`` of agents; of one alone, a view."""
    if len(values) == 1:
        return nested.at(values[0], (slice(None), None))
    return nested.apply(lambda *arrays: np.stack(arrays, axis=1), *values)


def _of_agent(space: Space[Any], place: int, count: int) -> Space[Any]:
    if isinstance(space, Dict):
        return Dict({key: _of_agent(part, place, count) for key, part in space.spaces.items()})
    if isinstance(space, Tuple):
        return Tuple([_of_agent(part, place, count) for part in space.spaces])
    shape = space.shape or ()
    has_agents = shape[:1] == (count,) and isinstance(space, Box | MultiDiscrete | MultiBinary)
    if not has_agents or (isinstance(space, MultiBinary) and len(shape) == 1):
        raise ValueError(
            f"the {count} agents as the first dimension of a Box, MultiDiscrete or MultiBinary"
            f"{', and another one' if isinstance(space, MultiBinary) else ''}, got {space}."
        )
    if isinstance(space, Box):
        low, high = space.low[place], space.high[place]
        return Box(low, high, shape[1:], space.dtype)
    if isinstance(space, MultiBinary):
        return MultiBinary(shape[1:] if len(shape) > 2 else shape[1])
    discrete: Any = space
    number, start = discrete.nvec[place], discrete.start[place]
    return MultiDiscrete(number, start=start) if shape[1:] else Discrete(number, start=start)
