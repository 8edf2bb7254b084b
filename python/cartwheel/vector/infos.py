"""Infos of a batch: those that Gymnasium's own function has to put together, and who failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

#: The mask of rows whose infos were lost with their worker.
LOST = "_infos_lost"
#: Masks of the rows whose environment was made anew.
FAILURES = ("_env_error", "_worker_restarted", LOST)


def check_infos(infos: Any) -> None:
    """Refuses infos of a batch in which nobody could find who failed, or how an episode ended.

    Raises:
        TypeError: They are no dictionary.
    """
    if not isinstance(infos, dict):
        raise TypeError(
            "the infos of vector environments must be a dict of arrays with an entry an "
            f"environment, got {type(infos)}: leave the wrapper out that makes them so, such as "
            "gymnasium.wrappers.vector.DictInfoToList, and wrap only what others are given"
        )


def failed_rows(infos: dict[str, Any]) -> NDArray[np.bool_] | None:
    """Whose environment was made anew, with ``on_error="truncate"`` or a worker's restart.

    Args:
        infos: Those of one step.

    Returns:
        A mask of the places of the batch; ``None`` if it was nobody's.

    Raises:
        TypeError: They are no dictionary.
    """
    check_infos(infos)
    masks = [infos[name] for name in FAILURES if name in infos]
    return np.logical_or.reduce(masks) if masks else None


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
