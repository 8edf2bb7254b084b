"""Masks of actions by agent: from parts of observations, or from infos."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict

from cartwheel._cartwheel import keep_masks
from cartwheel.vector.action_masks import DEFAULT, num_actions

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.workers.envs.agents_layout import Group, Layout


class AgentMasks:
    """The masks that the agents of each row showed last.

    Attributes:
        key: The part of observations, or of infos, that has masks; ``None``: there are no masks.
        in_observations: Whether the observations of each agent have masks.
        is_shown: Whether an agent has shown a mask.
    """

    def __init__(
        self,
        key: str | None,
        layout: Layout,
        places: list[tuple[Group, int]],
        num_envs: int,
    ) -> None:
        """No row has a mask yet; ``places`` are those of agents in their groups."""
        self.key = key
        self._agents, self._places = layout.agents, places
        self._lengths = [
            None if key is None else num_actions(space) for space in layout.action_spaces
        ]
        self.in_observations = [
            _has_masks(space, key, length)
            for space, length in zip(layout.observation_spaces, self._lengths, strict=True)
        ]
        self.is_shown = any(self.in_observations)
        self._num_envs = num_envs
        #: The rows of the last batch; ``None``: all of them.
        self._rows: NDArray[np.int64] | None = None

    @cached_property
    def _known(self) -> list[NDArray[np.bool_] | None]:
        """The masks of each agent, ``None`` where it has none; made when the first is shown.

        Before that they would take memory for spaces of so many actions that nothing masks them.
        """
        return [
            None if length is None else np.ones((self._num_envs, length), np.bool_)
            for length in self._lengths
        ]

    def clear(self, rows: Any) -> None:
        """These rows begin anew, or what they showed last was not seen."""
        for known in self._known if self.is_shown else []:
            if known is not None:
                known[rows] = True

    def kept(self) -> list[bytes] | None:
        """Returns the masks of all rows for a state: bytes for each agent that has some."""
        if not self.is_shown:
            return None
        return [b"" if known is None else known.tobytes() for known in self._known]

    def check(self, kept: Any) -> None:
        """Checks masks of a state.

        Raises:
            ValueError: They are of other agents, or of another number of rows or actions.
        """
        sizes = [self._num_envs * (length or 0) for length in self._lengths]
        is_bytes = isinstance(kept, list) and all(isinstance(one, bytes) for one in kept)
        if not is_bytes or [len(one) for one in kept] != sizes:
            raise ValueError(
                f"`state['agent_masks']` must be a list of bytes of the lengths {sizes}."
            )

    def keep(self, kept: list[bytes]) -> None:
        """Continues with the masks of a state."""
        self.is_shown = True
        for known, own in zip(self._known, kept, strict=True):
            if known is not None:
                known[:] = np.frombuffer(own, np.bool_).reshape(known.shape)

    def take_in(self, columns: Any, lives: NDArray[np.bool_]) -> None:
        """Keeps the masks of a batch of columns, which may be of some rows.

        Args:
            columns: The batch.
            lives: Which agents live in its rows as they are shown, ``(agents, n)``: the next
                actions of others are ignored.
        """
        if not self.is_shown and not columns.agent_infos:
            return
        rows = columns.infos.get("env_index")
        self._rows = None if rows is None else rows.copy()  # the array is the caller's
        ignored = ~lives
        for place, length in enumerate(self._lengths):
            if length is None:
                continue
            shown = self._shown(columns, place)
            if shown is None and not self.is_shown:
                continue
            self.is_shown = True
            # A step replaces the masks of all of its rows; a reset of some shows others again.
            replaces, known = columns.episode_over is not None, self._known[place]
            assert known is not None, "its actions are discrete"
            keep_masks(known, self._rows, shown, ignored[place], replaces=replaces)

    def _shown(self, columns: Any, place: int) -> tuple[NDArray[np.bool_], int, Any] | None:
        """Returns the masks of an agent, as :func:`cartwheel._cartwheel.keep_masks` takes them."""
        length = self._lengths[place]
        assert length is not None, "agents whose actions are not discrete have no masks"
        if self.in_observations[place]:
            group, at = self._places[place]
            values = columns.observations[group.key]
            if not group.is_fixed:
                values, at = values[at], 0
            masks = _as_flags(values[self.key])
            return masks.reshape(len(masks), -1, length), at, columns.present[place]
        infos = columns.agent_infos.get(place, {})
        if self.key not in infos:
            return None
        is_shown, values = _as_flags(infos[f"_{self.key}"]), np.asarray(infos[self.key])
        if values.dtype == object:
            values = _joined(values, is_shown, length)
        if values[0].size != length or values.dtype.kind not in "biuf":
            raise ValueError(
                f"the masks `{self.key}` in the infos of {self._agents[place]!r} must "
                f"have {length} numbers, one for each action, got {values.dtype} of the shape "
                f"{values.shape[1:]}."
            )
        return _as_flags(values).reshape(len(values), 1, length), 0, is_shown

    def by_agent(self, envs: Any, env_index: Any) -> dict[Any, NDArray[np.bool_]]:
        """Returns copies of the masks of agents with discrete actions; ``None``: of the last batch.

        Raises:
            ValueError: No agent has shown a mask.
        """
        if not self.is_shown:
            why = (
                "it was made with action_mask=None"
                if self.key is None
                else f"neither observations nor infos of an agent have the key {self.key!r}. Name "
                "the key by `action_mask`, and reset first if infos have it"
            )
            raise ValueError(f"{envs!r} has no masks of actions: {why}.")
        rows = self._rows if env_index is None else env_index
        known = zip(self._agents, self._known, strict=True)
        return {
            agent: masks.copy() if rows is None else masks[rows]
            for agent, masks in known
            if masks is not None
        }


def check_mask_key(key: str | None, layout: Layout) -> None:
    """Checks a key of masks that the caller named.

    Raises:
        ValueError: No agent has discrete actions; or the part of an agent's observations that the
            key names is not a mask.
    """
    if key is None or key == DEFAULT:
        return
    lengths = [num_actions(space) for space in layout.action_spaces]
    if all(length is None for length in lengths):
        raise ValueError(
            f"`action_mask={key!r}` needs discrete actions, and those of all agents are others."
        )
    spaces = zip(layout.agents, layout.observation_spaces, lengths, strict=True)
    for agent, space, length in spaces:
        if length is None or not isinstance(space, Dict) or key not in space.spaces:
            continue  # infos may have it
        if not _has_masks(space, key, length):
            raise ValueError(
                f"`action_mask={key!r}` names {space[key]} in the observations of {agent!r}, and a "
                f"mask of its actions is an array of {length} numbers."
            )


def _joined(values: NDArray[np.object_], is_shown: NDArray[np.bool_], length: int) -> NDArray[Any]:
    """Returns masks that are lists, or tuples of the parts of a ``MultiDiscrete``, as an array.

    If one has another length, the array has it alone.
    """
    masks = np.zeros((len(values), length), np.float64)
    for row in np.flatnonzero(is_shown).tolist():
        mask = np.hstack(values[row])
        if mask.size != length or mask.dtype.kind not in "biuf":
            return mask[None]
        masks[row] = mask
    return masks


def _as_flags(values: Any) -> NDArray[np.bool_]:
    """Returns which values are not zero; values of one byte are not copied."""
    array = np.ascontiguousarray(values)
    is_integer = array.dtype.kind in "biu" and array.itemsize == 1
    return array.view(np.bool_) if is_integer else array != 0


def _has_masks(space: Space[Any], key: str | None, length: int | None) -> bool:
    """Whether observations of a space have a mask of so many actions."""
    if length is None or not isinstance(space, Dict) or key not in space.spaces:
        return False
    shape = space[key].shape
    return shape is not None and int(np.prod(shape)) == length
