"""A set of weak references for several threads."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class ConcurrentWeakSet(Generic[T]):
    """A set of weak references, which threads may change while another one iterates.

    The iteration over a ``weakref.WeakSet``, also that of ``list`` and ``copy``, raises a
    ``RuntimeError`` if another thread adds an object meanwhile. This one has the objects that were
    there at its beginning.
    """

    def __init__(self) -> None:
        self._by_id: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, one: T) -> None:
        """Adds an object until it is collected."""
        self._by_id[id(one)] = one

    def clear(self) -> None:
        """Removes all."""
        self._by_id.clear()

    def __iter__(self) -> Iterator[T]:
        """The objects of this moment, which live while the iterator does."""
        references = self._by_id.valuerefs()  # by one call of C
        return iter([one for each in references if (one := each()) is not None])
