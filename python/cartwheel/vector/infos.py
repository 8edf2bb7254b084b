"""Infos of a batch: checks of their form, and the rows that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The mask of rows whose infos were lost with their worker.
LOST = "_infos_lost"
#: The mask of rows that lost their environment with its worker.
RESTARTED = "_worker_restarted"
#: Masks of the rows whose environment was replaced.
FAILURES = ("_env_error", RESTARTED, LOST)


def check_infos(infos: Any) -> None:
    """Checks that infos are a dictionary, which shows failed rows and final observations.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    if not isinstance(infos, dict):
        raise TypeError(
            "the infos of vector environments must be a dict of arrays with one entry for each "
            f"environment, got {type(infos)}: remove the wrapper that changes the infos, such as "
            "gymnasium.wrappers.vector.DictInfoToList"
        )


def is_dense(finals: Any) -> bool:
    """Whether final observations are a batch of all rows, and not one object a row."""
    return not (isinstance(finals, np.ndarray) and finals.dtype == object)


def failed_rows(infos: dict[str, Any]) -> NDArray[np.bool_] | None:
    """The rows whose environment was replaced, by ``on_error="restart"`` or a worker's restart.

    Args:
        infos: The infos of one step.

    Returns:
        A mask of the batch; ``None`` if no row failed.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    check_infos(infos)
    masks = [infos[name] for name in FAILURES if name in infos]
    return np.logical_or.reduce(masks) if masks else None
