"""Handles Ctrl-C in the middle of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartwheel._cartwheel import Pool


class Interruptible:
    """A context around a call that begins a task and then waits for the result.

    If Ctrl-C comes between the two, the call stays pending although the caller does not wait for
    its result. A later reset may drop such a call, as it may after an interrupted wait.
    """

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        """Guards a call of ``pool``."""
        self._pool = pool

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Marks the pending call as given up if something such as Ctrl-C ended the context."""
        if kind is not None and not issubclass(kind, Exception):
            self._pool.give_up()
