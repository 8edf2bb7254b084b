"""A progress bar for people who watch, silent in a log."""

from __future__ import annotations

import sys


class Progress:
    """Counts ``advance`` calls up to ``total`` and draws them on stderr if that is a terminal."""

    WIDTH = 30

    def __init__(self, total: int) -> None:
        """Starts at nothing of ``total``."""
        self._total = total
        self._count = 0
        self._visible = sys.stderr.isatty()

    def advance(self, label: str) -> None:
        """One part is about to begin; ``label`` says which."""
        self._count += 1
        if self._visible:
            filled = self.WIDTH * self._count // self._total
            bar = "█" * filled + "░" * (self.WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K{bar} {self._count}/{self._total} {label}")
            sys.stderr.flush()

    def close(self) -> None:
        """Wipes the bar."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
