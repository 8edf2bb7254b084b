"""Functions that are called when an object is collected, or when its process ends."""

from __future__ import annotations

import functools
import os
import weakref
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

    The owner keeps this object, and the program refers to it by a weak reference alone. So the
    function may refer to the owner, as the function that ends a vector environment does where an
    environment refers to it: then both are garbage together, which a garbage collection ends.

    Attributes:
        alive: Whether the function was not called yet, and is going to be.
    """

    def __init__(self, owner: object, function: Callable[..., object], *args: object) -> None:
        """Calls nothing yet.

        Args:
            owner: The object.
            function: The function. If it or ``args`` refer to the object, a garbage collection has
                to end it.
            *args: Its first arguments.
        """
        self._pid = os.getpid()
        self._calls = [functools.partial(function, *args)]  # `pop` is atomic: one thread calls it
        here = weakref.ref(self)
        self._at_end = Finalize(owner, _call, args=(here,), exitpriority=_EXIT_PRIORITY)

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

    def __del__(self) -> None:
        """Calls the function when this object is garbage, together with its owner.

        The weak references were cleared by then, but what the function refers to is whole.
        """
        self()


def _call(finalizer: weakref.ref[Finalizer]) -> None:
    called = finalizer()
    if called is not None:
        called()
