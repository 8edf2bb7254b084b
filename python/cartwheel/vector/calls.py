"""Notices steps and resets of a vector environment that another caller made."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import Pool

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

#: Calls of vector environments that have no pool and count none themselves.
_COUNTS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class Calls:
    """Compares the present number of steps and resets with the number after the last own one.

    Vector environments of cartwheel count every call. For others, calls through the wrappers of
    cartwheel, evaluations and collectors count; a step or a reset past all of these is not seen.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Begins with the present number; ``envs`` may be wrapped."""
        self._envs = envs.unwrapped
        pool = getattr(self._envs, "_pool", None)
        self._pool = pool if isinstance(pool, Pool) else None
        self._seen = self._number()

    def note(self) -> None:
        """The caller of this method made a call."""
        if self._pool is None:
            _COUNTS[self._envs] = self._number() + 1
        self._seen = self._number()

    def made(self, number: int) -> None:
        """The same, of so many calls; only for environments that count them themselves."""
        self._seen += number

    def others(self) -> bool:
        """Whether another caller made one since then.

        Raises:
            gymnasium.error.ClosedEnvironmentError: The vector environment is closed.
            cartwheel.ForkedProcessError: In a forked child.
        """
        return self._number() != self._seen

    def _number(self) -> int:
        return _COUNTS.get(self._envs, 0) if self._pool is None else self._pool.begun()
