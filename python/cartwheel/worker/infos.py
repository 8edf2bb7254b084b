"""Infos of a batch that Gymnasium's own function has to put together."""

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
    """Adds one environment's info to those of a batch, by ``VectorEnv._add_info``.

    Its ``num_envs`` is the number of rows of the batch while the function runs.

    Args:
        owner: The vector environment, whose class may have a function of its own.
        infos: The batch's infos so far.
        info: The info to add.
        place: The place of its row in the batch.
        rows: Rows of the batch, which may be fewer than the environments.

    Raises:
        RuntimeError: The vector environment is gone.
    """
    if owner is None:
        raise RuntimeError("the vector environment is gone")
    if rows == owner.num_envs:
        return owner._add_info(infos, info, place)
    # The function makes arrays of `num_envs` rows. It is the owner's own, and may keep something
    # there, so it is the owner that has fewer rows meanwhile and not a copy of it.
    num_envs, owner.num_envs = owner.num_envs, rows
    try:
        return owner._add_info(infos, info, place)
    finally:
        owner.num_envs = num_envs
