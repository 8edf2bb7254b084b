"""Infos of a batch: those that Gymnasium's own function has to put together, and who failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
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
