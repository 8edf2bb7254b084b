"""Numbers of environments, which EnvPool calls ``env_id``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.arguments import as_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_env_ids(env_id: Any, num_envs: int) -> NDArray[np.intp]:
    """Returns an array of environment numbers, from an array or a list of integers.

    The caller must check that no id is there twice.

    Raises:
        TypeError: ``env_id`` is not a one-dimensional collection of integers.
        ValueError: ``env_id`` is empty.
        IndexError: An environment does not exist.
    """
    given = as_integers("env_id", env_id)
    if not given.size:
        raise ValueError("`env_id` is empty: it must name at least one environment")
    ids: NDArray[np.intp] = given.astype(np.intp, copy=False)
    # Negative numbers are very large as unsigned numbers, so one comparison finds both errors.
    wrong = ids.view(np.uintp) >= np.asarray(num_envs, np.uintp)
    if b"\1" in wrong.tobytes():
        raise IndexError(
            f"`env_id` names environment {given[wrong][0]}; there are 0 to {num_envs - 1}"
        )
    return ids


def check_distinct(ids: NDArray[Any]) -> None:
    """Raises ``ValueError`` if an environment is named twice."""
    numbers, counts = np.unique(ids, return_counts=True)
    if len(numbers) < len(ids):
        raise ValueError(f"`env_id` names environment {numbers[counts > 1][0]} twice")
