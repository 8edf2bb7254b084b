"""What a Ctrl-C in the middle of a call leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartwheel._cartwheel import Pool


class Interruptible:
    """Around a call that begins and waits.

    A Ctrl-C between the two leaves a call pending that the caller does not wait for. So a reset
    may drop it, as it does where the wait itself was interrupted.
    """

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        """Around a call of ``pool``."""
        self._pool = pool

    def __enter__(self) -> None:
        """Needs nothing."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Looks at what ended the call."""
        if kind is not None and not issubclass(kind, Exception):
            self._pool.give_up()
