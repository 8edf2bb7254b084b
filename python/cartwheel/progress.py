"""A progress bar on terminals; silent elsewhere."""

from __future__ import annotations

import sys
import time


class Progress:
    """Counts ``advance`` calls up to ``total`` and draws them on stderr if that is a terminal."""

    WIDTH = 30
    #: Seconds between two drawings of one label; more drawings would not be seen.
    INTERVAL = 0.05

    def __init__(self, total: int) -> None:
        """Starts at nothing of ``total``."""
        self._total = total
        self._count = 0
        self._visible = sys.stderr is not None and sys.stderr.isatty()
        self._drawn: tuple[str, float] = ("", 0.0)

    def advance(self, label: str, count: int = 1) -> None:
        """``count`` parts begin, or are done; ``label`` says which."""
        self._count += count
        now = time.monotonic()
        drawn, at = self._drawn
        if self._visible and (label != drawn or now - at >= self.INTERVAL):
            self._drawn = label, now
            filled = self.WIDTH * self._count // self._total
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K{bar} {self._count}/{self._total} {label}")
            sys.stderr.flush()

    def close(self) -> None:
        """Wipes the bar."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
