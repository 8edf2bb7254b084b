"""What goes wrong with a pool and has no class elsewhere."""

from __future__ import annotations

import gymnasium as gym


class EnvBusyError(gym.error.AlreadyPendingCallError, ValueError):
    """Environments were sent to although they have not been received since their last send.

    Nothing has been sent. Receive them first.

    Attributes:
        env_ids: The environments whose results are outstanding.
    """

    def __init__(self, calling: str, env_ids: list[int]) -> None:
        """Names the busy environments when ``calling`` is called."""
        super().__init__(
            f"`{calling}` was called while environments {env_ids} have work outstanding: `recv` it "
            "first",
            calling,
        )
        self.env_ids = env_ids
