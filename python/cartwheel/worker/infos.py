"""Infos of a batch that are put together by Gymnasium's own function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


def add_info(
    owner: VectorEnv[Any, Any, Any] | None,
    infos: dict[str, Any],
    info: dict[str, Any],
    place: int,
    rows: int,
) -> dict[str, Any]:
    """Adds one environment's info to the infos of a batch, by ``VectorEnv._add_info``.

    While the function runs, ``owner.num_envs`` is the number of rows of the batch.

    Args:
        owner: The vector environment, whose class may override ``_add_info``.
        infos: The batch's infos so far.
        info: The info to add.
        place: The place of its row in the batch.
        rows: The number of rows of the batch, at most ``owner.num_envs``.

    Raises:
        RuntimeError: The vector environment is gone.
    """
    if owner is None:
        raise RuntimeError("the vector environment is gone")
    if rows == owner.num_envs:
        return owner._add_info(infos, info, place)
    # `_add_info` makes arrays of `num_envs` rows. An override may keep state on the owner, so
    # `num_envs` is changed on the owner itself and not on a copy.
    num_envs, owner.num_envs = owner.num_envs, rows
    try:
        return owner._add_info(infos, info, place)
    finally:
        owner.num_envs = num_envs
