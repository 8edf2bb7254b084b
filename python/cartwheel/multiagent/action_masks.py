"""Masks of actions by agent: from parts of observations, or from infos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode

from cartwheel.vector.action_masks import DEFAULT, num_actions

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.workers.agents_layout import Layout


class AgentMasks:
    """The masks that the agents of each row showed last.

    Attributes:
        in_observations: Whether the observations of each agent have masks.
        is_shown: Whether an agent has shown a mask.
    """

    def __init__(
        self,
        layout: Layout,
        observations: Callable[[dict[str, Any], int], Any],
        num_envs: int,
        mode: AutoresetMode,
    ) -> None:
        """No row has a mask yet; ``observations`` returns those of the agent in a place."""
        self._agents, self._observations, self._mode = layout.agents, observations, mode
        self._lengths = [num_actions(space) for space in layout.action_spaces]
        self.in_observations = [
            _has_masks(space, length)
            for space, length in zip(layout.observation_spaces, self._lengths, strict=True)
        ]
        self.is_shown = any(self.in_observations)
        self._known = [
            None if length is None else np.ones((num_envs, length), np.bool_)
            for length in self._lengths
        ]
        self._rows: NDArray[np.intp] = np.arange(num_envs)

    def clear(self) -> None:
        """All rows begin anew."""
        for known in self._known:
            if known is not None:
                known[:] = True

    def take_in(self, columns: Any) -> None:
        """Keeps the masks of a batch of columns, which may be of some rows."""
        count, rows = columns.present.shape[1], columns.infos.get("env_index")
        self._rows = np.arange(count) if rows is None else np.asarray(rows, np.intp)
        for place, known in enumerate(self._known):
            if known is None:
                continue
            mask, has_mask = self._mask(columns, place)
            if mask is None and not self.is_shown:
                continue
            self.is_shown = True
            is_ignored, over = ~columns.lives[place], columns.episode_over
            if over is not None:
                same_step = self._mode is AutoresetMode.SAME_STEP
                is_ignored = np.where(over, same_step & ~columns.present[place], is_ignored)
                is_ignored |= over & (not same_step)
                # A step replaces the masks of all of its rows; a reset of some shows others again.
                known[self._rows] = True
            if mask is not None:
                found = mask | ~mask.any(axis=1, keepdims=True)
                known[self._rows[has_mask]] = found[has_mask]
            known[self._rows[is_ignored]] = True

    def _mask(self, columns: Any, place: int) -> tuple[Any, Any]:
        """Returns the masks of an agent, ``(n, actions)``, and which rows show one."""
        length = self._lengths[place]
        assert length is not None, "agents whose actions are not discrete have no masks"
        if self.in_observations[place]:
            part = self._observations(columns.observations, place)[DEFAULT]
            return part.reshape(len(part), length) != 0, columns.present[place]
        infos = columns.agent_infos.get(place, {})
        if DEFAULT not in infos:
            return None, None
        values = np.asarray(infos[DEFAULT])
        if values.dtype == object or values[0].size != length:
            raise ValueError(
                f"the masks `{DEFAULT}` in the infos of {self._agents[place]!r} must "
                f"have {length} numbers, one for each action, got {values.dtype} of the shape "
                f"{values.shape[1:]}."
            )
        return values.reshape(len(values), length) != 0, np.asarray(infos[f"_{DEFAULT}"])

    def by_agent(self, envs: Any, env_index: Any) -> dict[Any, NDArray[np.bool_]]:
        """Returns copies of the masks of agents whose actions are discrete.

        Args:
            envs: The vector environment, for errors.
            env_index: Row numbers; ``None``: those of the last batch.

        Raises:
            ValueError: No agent has shown a mask.
        """
        if not self.is_shown:
            raise ValueError(
                f"{envs!r} has no masks of actions: neither observations nor infos of an agent "
                f"have the key {DEFAULT!r}. Reset first if infos have it."
            )
        rows = self._rows if env_index is None else env_index
        known = zip(self._agents, self._known, strict=True)
        return {agent: masks[rows] for agent, masks in known if masks is not None}


def _has_masks(space: Space[Any], length: int | None) -> bool:
    """Whether observations of a space have a mask of so many actions."""
    if length is None or not isinstance(space, Dict) or DEFAULT not in space.spaces:
        return False
    shape = space[DEFAULT].shape
    return shape is not None and int(np.prod(shape)) == length
