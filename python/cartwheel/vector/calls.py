"""Detection of steps and resets of a vector environment by another caller."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from cartwheel.vector.pool_owner import owner_of

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

#: Numbers of calls of vector environments that have no pool and do not count calls themselves.
_COUNTS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
#: Those after the last reset of all rows, as far as it is known.
_RESETS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class Calls:
    """Compares the number of steps and resets with the number after the caller's own last call.

    Vector environments of cartwheel count every call. For others, calls through the wrappers of
    cartwheel, evaluations and collectors are counted; other steps and resets are not detected.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Begins with the present number; ``envs`` may be wrapped."""
        self._envs = envs.unwrapped
        self._owner = owner_of(self._envs)
        self._pool = None if self._owner is None else self._owner._pool
        self._seen = self._number()

    @property
    def sees_all(self) -> bool:
        """Whether every call is counted, when it begins."""
        return self._pool is not None

    @property
    def has_begun(self) -> bool:
        """Whether there was any call."""
        return self._number() > 0

    @property
    def begins(self) -> bool:
        """Whether all rows are known to begin an episode: the last call was a reset of them."""
        if self._owner is None:
            return self._number() == _RESETS.get(self._envs, 0)
        return self._number() == self._owner._reset_at

    def note(self, *, is_reset: bool = False) -> None:
        """Records a call of the caller's own; ``is_reset``: it has reset all rows."""
        if self._pool is None:
            _COUNTS[self._envs] = self._number() + 1
            if is_reset:
                _RESETS[self._envs] = self._number()
        self._seen = self._number()

    def made(self, number: int) -> None:
        """Records ``number`` own calls, for environments that count calls themselves."""
        self._seen += number

    def others(self) -> bool:
        """Whether another caller has made a call since then.

        Raises:
            gymnasium.error.ClosedEnvironmentError: The vector environment is closed.
            cartwheel.ForkedProcessError: In a forked child.
        """
        return self._number() != self._seen

    def _number(self) -> int:
        return _COUNTS.get(self._envs, 0) if self._pool is None else self._pool.begun()
