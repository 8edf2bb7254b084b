"""The states of rows, where environments can be saved."""

from __future__ import annotations

from typing import Any


class States:
    """Asks a vector environment for states.

    Args:
        envs: It has the method ``get_state``.
        required: Whether it is an error if its environments cannot be saved.
    """

    def __init__(self, envs: Any, *, required: bool) -> None:
        """Asks nothing yet."""
        self._envs, self._required = envs, required
        #: Whether environments can be saved; ``None`` before that was tried.
        self._known: bool | None = None

    def __call__(self, rows: list[int]) -> list[bytes] | None:
        """Returns a state for each row; ``None`` if there is none now.

        Raises:
            Exception: The environments cannot be saved, and states are required.
        """
        if self._known is False or getattr(self._envs, "in_flight", None):
            return None
        try:
            states: list[bytes] = self._envs.get_state(rows)
        except Exception as error:
            if self._known is None and not self._required:
                self._known = False
            elif self._known is None or not isinstance(error, ValueError):
                raise
            return None  # a row that lost its environment cannot be saved
        self._known = True
        return states
