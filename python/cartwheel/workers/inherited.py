"""What a forked worker inherits of the vector environments of its parent, and frees.

Otherwise the memory and the sockets of a vector environment would stay until the last worker ends
that was forked while it was open. Arrays that an environment function refers to stay valid.
"""

from __future__ import annotations

import weakref
from typing import Protocol


class Holder(Protocol):
    """Holds memory or descriptors: a pool, or a crew."""

    def abandon(self) -> None:
        """Frees, in a forked worker, what it inherited of this object."""


#: By their ids, since crews are compared by what they are.
_holders: weakref.WeakValueDictionary[int, Holder] = weakref.WeakValueDictionary()


def free_in_workers(holder: Holder) -> None:
    """Lets workers that are forked from now on free what they inherit of ``holder``."""
    _holders[id(holder)] = holder


def free_inherited() -> None:
    """Frees, in a forked worker, what it inherited."""
    inherited = list(_holders.values())
    _holders.clear()  # workers that this one forks must not close the same descriptors again
    for holder in inherited:
        holder.abandon()
