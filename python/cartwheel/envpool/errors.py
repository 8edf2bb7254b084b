"""Exceptions of pools."""

from __future__ import annotations

import gymnasium as gym

from cartwheel.errors import as_pickled


class EnvBusyError(gym.error.AlreadyPendingCallError, ValueError):
    """A send or reset of environments whose last results were not received yet.

    Nothing was sent. Receive these results first.

    Attributes:
        env_ids: The environments whose results were not received.
    """

    __reduce__ = as_pickled

    def __init__(self, calling: str, env_ids: list[int]) -> None:
        """Makes the message from the called method and the environments."""
        super().__init__(
            f"`{calling}` was called while results of environments {env_ids} are outstanding: "
            "`recv` them first",
            calling,
        )
        self.env_ids = env_ids
