"""A progress bar on terminals; silent elsewhere."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Progress:
    """Counts ``advance`` calls up to ``total`` and draws them on stderr if that is a terminal."""

    WIDTH = 30
    #: Seconds between two drawings of one label; more drawings would not be seen.
    INTERVAL = 0.05

    def __init__(self, total: int, after_s: float = 0.0) -> None:
        """Starts at 0 of ``total``; draws nothing in the first ``after_s`` seconds."""
        self._total = total
        self._count = 0
        self._visible = sys.stderr is not None and sys.stderr.isatty()
        self._begins = time.monotonic() + after_s
        self._drawn: tuple[str, float] = ("", 0.0)

    def advance(self, label: str, count: int = 1) -> None:
        """Counts ``count`` parts that begin or are done; ``label`` names them."""
        self._count += count
        now = time.monotonic()
        drawn, at = self._drawn
        if self._visible and now >= self._begins and (label != drawn or now - at >= self.INTERVAL):
            self._drawn = label, now
            filled = self.WIDTH * self._count // self._total
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K{bar} {self._count}/{self._total} {label}")
            sys.stderr.flush()

    @property
    def is_visible(self) -> bool:
        """Whether stderr is a terminal."""
        return self._visible

    def show(self, label: str, count: int) -> None:
        """Sets the number of parts that are done to ``count``."""
        self.advance(label, count - self._count)

    def close(self) -> None:
        """Clears the bar."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextlib.contextmanager
def reporting(
    progress: bool | Callable[[int, int], object],  # noqa: FBT001 - the caller's argument
    total: int,
) -> Iterator[Callable[[int], Any]]:
    """Yields a function that is told how many of ``total`` episodes are done.

    It draws a bar for ``True``, calls a function with both numbers, and does nothing for ``False``.
    """
    if progress is True:
        with contextlib.closing(Progress(total)) as bar:
            yield functools.partial(bar.show, "episodes")
    elif callable(progress):
        yield lambda done: progress(done, total)
    else:
        yield lambda _: None
