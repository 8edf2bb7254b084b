"""Checks of ``env_id``, EnvPool's numbers of environments, and the error for busy environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from cartwheel._internal.arguments import as_integers
from cartwheel.errors import CartwheelError, as_pickled

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_env_ids(env_id: Any, num_envs: int) -> NDArray[np.intp]:
    """Returns an array of environment numbers, from an array or a list of integers.

    The caller must check that the ids are distinct.

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


class EnvBusyError(CartwheelError, gym.error.AlreadyPendingCallError, ValueError):
    """Environments were sent or reset before their last results were received.

    Nothing was sent. Receive these results first.

    Attributes:
        env_ids: The environments whose results were not received.
    """

    __module__ = "cartwheel.envpool"  # where users import it from, for tracebacks
    __reduce__ = as_pickled

    def __init__(self, calling: str, env_ids: list[int]) -> None:
        super().__init__(
            f"`{calling}` was called while results of environments {env_ids} are outstanding: "
            "`recv` them first",
            calling,
        )
        self.env_ids = env_ids
