"""Deadlines of waits that have several parts."""

from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Deadline:
    """When a wait ends.

    Attributes:
        seconds: Seconds of the whole wait; ``None`` for as long as it takes.
        begin: When the wait began, by the monotonic clock.
    """

    seconds: float | None
    begin: float = dataclasses.field(default_factory=time.monotonic)

    def left(self) -> float | None:
        """Seconds that are left, at least 0; ``None`` for as long as it takes."""
        if self.seconds is None:
            return None
        return max(0.0, self.begin + self.seconds - time.monotonic())
