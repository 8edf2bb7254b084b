"""Gymnasium's own ``make_vec`` and classes, with cartwheel behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.vector.presets import AsyncVectorEnv, SyncVectorEnv

if TYPE_CHECKING:
    from typing_extensions import Self


class patch_gymnasium:
    """Makes Gymnasium build cartwheel's vector environments.

    Rebinds ``gymnasium.vector.AsyncVectorEnv`` and ``gymnasium.vector.SyncVectorEnv``, which
    ``gymnasium.make_vec`` looks up when it is called. A call is enough to patch; in a ``with``
    statement the classes are restored at its end.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> with cartwheel.patch_gymnasium():
        ...     envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync")
        >>> type(envs).__module__
        'cartwheel.vector.presets'
    """

    def __init__(self) -> None:
        """Patches."""
        self._before = (gym.vector.AsyncVectorEnv, gym.vector.SyncVectorEnv)
        self._bind(AsyncVectorEnv, SyncVectorEnv)

    @staticmethod
    def _bind(asynchronous: Any, synchronous: Any) -> None:
        gym.vector.AsyncVectorEnv = asynchronous  # type: ignore[misc]
        gym.vector.SyncVectorEnv = synchronous  # type: ignore[misc]

    def restore(self) -> None:
        """Binds the classes that were there before."""
        self._bind(*self._before)

    def __enter__(self) -> Self:
        """The patch is in force already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Restores."""
        self.restore()
