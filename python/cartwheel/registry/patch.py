"""Makes Gymnasium's own ``make_vec`` use cartwheel's classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.vector.presets import AsyncVectorEnv, SyncVectorEnv

if TYPE_CHECKING:
    from typing_extensions import Self


class patch_gymnasium:
    """Makes Gymnasium build cartwheel's vector environments.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> with cartwheel.patch_gymnasium():
        ...     envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync")
        >>> type(envs).__module__
        'cartwheel.vector.presets'

    It replaces ``gymnasium.vector.AsyncVectorEnv`` and ``gymnasium.vector.SyncVectorEnv``, which
    ``gymnasium.make_vec`` looks up at each call. The patch begins with the call of
    ``patch_gymnasium()``. A ``with`` statement restores the classes at its end; :meth:`restore`
    does so at any time.
    """

    def __init__(self) -> None:
        """Replaces the classes."""
        self._before = (gym.vector.AsyncVectorEnv, gym.vector.SyncVectorEnv)
        self._bind(AsyncVectorEnv, SyncVectorEnv)

    @staticmethod
    def _bind(asynchronous: Any, synchronous: Any) -> None:
        gym.vector.AsyncVectorEnv = asynchronous  # type: ignore[misc]
        gym.vector.SyncVectorEnv = synchronous  # type: ignore[misc]

    def restore(self) -> None:
        """Restores the classes from before the patch."""
        self._bind(*self._before)

    def __enter__(self) -> Self:
        """Returns the patch, which is already active."""
        return self

    def __exit__(self, *_: object) -> None:
        """Restores the classes."""
        self.restore()
