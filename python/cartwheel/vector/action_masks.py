"""Masks of actions: where environments show them, how they are read, and if there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary, MultiDiscrete

from cartwheel._internal import nested
from cartwheel._internal.policy import masked_envs
from cartwheel._internal.spaces import Description, single_parts
from cartwheel._internal.suggestions import shown
from cartwheel.vector.pool_owner import ActType, ObsType, PoolOwner

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: The key that is looked for unless the caller names another one: Gymnasium's and PettingZoo's.
DEFAULT = "action_mask"


def as_mask_key(action_mask: Any) -> str | None:
    """Returns the key of masks.

    Raises:
        TypeError: It is neither text nor ``None``.
    """
    if action_mask is not None and not isinstance(action_mask, str):
        raise TypeError(
            "`action_mask` must be the key of masks in infos or observations, or None, got "
            f"{shown(action_mask)}."
        )
    return action_mask


def num_actions(space: Space[Any]) -> int | None:
    """Returns the length of a mask of actions; ``None`` if the space has none, or no actions.

    The parts of a ``MultiDiscrete`` or ``MultiBinary`` space are concatenated, as by sb3-contrib.
    """
    if isinstance(space, Discrete):
        return int(space.n)
    if isinstance(space, MultiDiscrete):
        return int(space.nvec.sum()) or None
    if isinstance(space, MultiBinary):
        return 2 * int(np.prod(space.shape))
    return None


def mask_source(
    action_mask: str | None, observations: Space[Any], described: Description, actions: Space[Any]
) -> tuple[str, int, int | None, bool] | None:
    """Returns where masks are, for ``Pool``: ``None`` if there are none.

    Args:
        action_mask: The key of masks in infos, or in observations.
        observations: The space of one observation.
        described: Its description, whose leaves are those of the pool.
        actions: The space of one action.

    Returns:
        The key, the number of actions, the number of the leaf of observations that has masks
        (``None``: they are in infos), and whether the caller named the key.

    Raises:
        ValueError: The caller named a key, and actions of this space have no masks; or the part of
            the observations that it names is not a mask.
    """
    if action_mask is None:
        return None
    is_named = action_mask != DEFAULT
    length = num_actions(actions)
    if length is None:
        if is_named:
            raise ValueError(
                f"`action_mask={action_mask!r}` needs discrete actions, and the action space is "
                f"{actions}."
            )
        return None
    leaf = None
    if isinstance(observations, Dict) and action_mask in observations.spaces:
        leaf = _leaf(described, action_mask, length)
        if leaf is None and is_named:
            raise ValueError(
                f"`action_mask={action_mask!r}` names {observations[action_mask]} in the "
                f"observations, and a mask of {actions} is an array of {length} numbers."
            )
    return action_mask, length, leaf, is_named


def _leaf(described: Description, key: str, length: int) -> int | None:
    """Returns the number of the leaf that has masks; ``None`` if the part is not a mask."""
    kind, parts = described[:2]
    if kind != "dict":
        return None
    before = 0
    for name, part in parts:
        if name == key:
            is_mask = part[0] == "leaf" and np.prod(part[2], dtype=np.int64) == length
            return before if is_mask else None
        before += sum(each[0] != "opaque" for each in single_parts(part))
    return None


def with_allowed(envs: Any, actions: Any, rows: NDArray[np.intp]) -> Any:
    """Returns actions of which those of ``rows`` are the first ones that the environments allow.

    Their results are dropped, but an environment may raise where an action is not allowed. Where
    vector environments show no masks of such actions, all stay as they are.
    """
    masked, space = masked_envs(envs), envs.single_action_space
    if not len(rows) or not getattr(masked, "has_action_masks", False):
        return actions
    masks = masked.action_masks(rows)
    if masks.shape[1] != num_actions(space):  # a wrapper makes them of others
        return actions
    if isinstance(space, Discrete):
        counts = np.array([space.n])
    else:
        counts = getattr(space, "nvec", np.full(space.shape or (), 2)).ravel()
    parts = np.split(masks, np.cumsum(counts)[:-1], axis=1)
    first = np.stack([part.argmax(axis=1) for part in parts], axis=1)
    first = first.reshape(len(rows), *(space.shape or ())) + getattr(space, "start", 0)
    return nested.put(space, actions, rows, first.astype(space.dtype))


def check_kept_masks(kept: Any, num_envs: int, actions: Space[Any]) -> None:
    """Checks the masks of a saved vector environment.

    Raises:
        ValueError: They are of another size.
    """
    length = num_envs * (num_actions(actions) or 0)
    if kept is not None and (not isinstance(kept, bytes) or len(kept) not in {0, length}):
        got = f"{len(kept)} bytes" if isinstance(kept, bytes) else shown(kept)
        raise ValueError(f"`state['envs']['action_masks']` must be {length} bytes, got {got}")


def no_masks(envs: Any) -> ValueError:
    """The error of a vector environment of cartwheel that shows no masks."""
    key, space = envs.action_mask, envs.single_action_space
    if key is None:
        why = "it was made with action_mask=None"
    elif num_actions(space) is None:
        why = f"its action space is {space}, which is not discrete"
    else:
        why = (
            f"neither its observations nor its infos so far have the key {key!r}. Name the key by "
            "`action_mask`, and reset first if infos have it"
        )
    return ValueError(f"{envs!r} has no masks of actions: {why}.")


class MaskedRows(PoolOwner[ObsType, ActType]):
    """The methods of a vector environment that read masks of actions."""

    #: The key of masks of actions in infos or observations; ``None``: there are none.
    action_mask: str | None

    @property
    def has_action_masks(self) -> bool:
        """Whether environments show masks of actions; masks in infos are known after a reset."""
        return self._pool.has_action_masks() is True

    def action_masks(self, env_index: Any = None) -> NDArray[np.bool_]:
        """Returns which actions each row of the last batch allows next.

        The batch is that of the last ``step``, ``reset`` or ``recv`` of this vector environment.
        Masks come from the part of the observations, or from the infos, that the keyword
        ``action_mask`` of the constructor names. In the mode ``SAME_STEP``, the mask of a row that
        ended is that of the reset.

        A row allows every action if its next action is ignored, because its episode is over; if
        its mask allows none; and if it shows none, as after ``set_state`` where infos have masks.

        Example:
            >>> import cartwheel
            >>> envs = cartwheel.make_vec("cartwheel/Taxi-v4", 2)
            >>> observations, infos = envs.reset(seed=1)
            >>> envs.action_masks().shape
            (2, 6)
            >>> envs.close()

        Args:
            env_index: Row numbers, in any order; by default the rows of the last batch, in its
                order. Rows in flight have the masks that they showed last.

        Returns:
            ``bool`` of shape ``(rows, actions)``, the caller's own. The parts of ``MultiDiscrete``
            and ``MultiBinary`` spaces are concatenated.

        Raises:
            ValueError: The environments show no masks, the mask of a row has another length than
                the action space, or a row does not exist or is named twice.
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
        """
        rows = None if env_index is None else self._numbers(env_index)
        masks = self._pool.action_masks(rows)
        if masks is None:
            raise no_masks(self)
        return masks
