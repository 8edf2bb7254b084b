"""Functions that are called when an object is collected, or when its process ends."""

from __future__ import annotations

import functools
import os
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Any priority: later finalizers of the same priority are called first.
_EXIT_PRIORITY = 10


class Finalizer:
    """Calls a function once: when its owner is collected, when this process ends, or earlier.

    ``weakref.finalize`` promises the same, but at the end of a program its functions are called
    wherever its own first use falls in the order of ``atexit``. After a program that began with
    ``tempfile.TemporaryDirectory()``, ``multiprocessing`` has terminated its daemonic children by
    then, and waited forever for the others; and in a process of ``multiprocessing`` they are not
    called at all. The finalizers of ``multiprocessing`` are called in both, before anything happens
    to children. Of several, the last one that was made is called first.

    A child that was forked from this process never calls the function.

    Attributes:
        alive: Whether the function was not called yet, and is going to be.
    """

    def __init__(self, owner: object, function: Callable[..., object], *args: object) -> None:
        """Calls nothing yet.

        Args:
            owner: The object.
            function: The function. Neither it nor ``args`` may refer to the object, which otherwise
                would never be collected.
            *args: Its first arguments.
        """
        self._pid = os.getpid()
        self._calls = [functools.partial(function, *args)]  # `pop` is atomic: one thread calls it
        self._at_end = Finalize(owner, self, exitpriority=_EXIT_PRIORITY)

    @property
    def alive(self) -> bool:
        """See the class."""
        return bool(self._calls) and os.getpid() == self._pid

    def __call__(self, *args: object) -> None:
        """Calls the function with further arguments, unless it was called or detached."""
        if not self.alive:
            return
        try:
            call = self._calls.pop()
        except IndexError:  # another thread was faster
            return
        self._at_end.cancel()
        call(*args)

    def detach(self) -> None:
        """Never calls the function."""
        self._calls.clear()
        self._at_end.cancel()
