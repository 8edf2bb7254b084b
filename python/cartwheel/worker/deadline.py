"""A deadline that several waits share."""

from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Deadline:
    """When a wait ends.

    Attributes:
        seconds: Seconds of the whole wait; ``None`` for no limit.
        begin: When the wait began, by the monotonic clock.
    """

    seconds: float | None
    begin: float = dataclasses.field(default_factory=time.monotonic)

    def left(self) -> float | None:
        """Returns the seconds that are left, at least 0; ``None`` for no limit."""
        if self.seconds is None:
            return None
        return max(0.0, self.begin + self.seconds - time.monotonic())
