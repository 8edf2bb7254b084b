"""Infos of a batch: which ones Gymnasium's own function gathers, and which rows failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The mask of rows whose infos were lost with their worker.
LOST = "_infos_lost"
#: Masks of the rows whose environment was replaced.
FAILURES = ("_env_error", "_worker_restarted", LOST)


def check_infos(infos: Any) -> None:
    """Refuses infos that do not show which rows failed and how episodes ended.

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
    """The rows whose environment was replaced, by ``on_error="truncate"`` or a worker's restart.

    Args:
        infos: Those of one step.

    Returns:
        A mask of the places of the batch; ``None`` if no row failed.

    Raises:
        TypeError: They are no dictionary.
    """
    check_infos(infos)
    masks = [infos[name] for name in FAILURES if name in infos]
    return np.logical_or.reduce(masks) if masks else None
