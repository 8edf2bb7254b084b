"""States that wrappers keep from one call to the next, checked before they are restored."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cartwheel._internal.suggestions import shown


def check_state(given: Any, like: dict[str, Any], lists: tuple[str, ...] = ()) -> None:
    """Checks that a state is one of this wrapper.

    Args:
        given: The argument of ``set_own_state``.
        like: The present state: dictionaries, arrays and numbers by name.
        lists: Names of entries in which the arrays may have any length.

    Raises:
        ValueError: An entry has another form than the present one, or is missing.
    """
    _check("state", given, like, lists, any_length=False)


def _check(path: str, given: Any, like: Any, lists: tuple[str, ...], *, any_length: bool) -> None:
    if isinstance(like, dict):
        if not isinstance(given, dict) or given.keys() != like.keys():
            got = sorted(given) if isinstance(given, dict) else shown(given)
            raise ValueError(f"`{path}` must be a dict with the keys {sorted(like)}, got {got}")
        for name, part in like.items():
            free = any_length or name in lists
            _check(f"{path}[{name!r}]", given[name], part, lists, any_length=free)
    elif isinstance(like, np.ndarray):
        skipped = 1 if any_length else 0
        fits = (
            isinstance(given, np.ndarray)
            and given.dtype == like.dtype
            and given.ndim == like.ndim
            and given.shape[skipped:] == like.shape[skipped:]
        )
        if not fits:
            shape = ("any", *like.shape[1:]) if any_length else like.shape
            got = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else shown(given)
            raise ValueError(f"`{path}` must be an array {like.dtype} {shape}, got {got}")
    elif type(given) is not type(like):
        raise ValueError(f"`{path}` must be of {type(like)}, got {shown(given)}")


class KeepsState:
    """A wrapper that can continue with the state of another one of its kind."""

    #: Entries of the state in which arrays may have any length.
    _any_length: ClassVar[tuple[str, ...]] = ()

    def get_own_state(self) -> dict[str, Any]:
        """Returns the state for :meth:`set_own_state`: copies, which can be pickled."""
        raise NotImplementedError

    def set_own_state(self, state: dict[str, Any]) -> None:
        """Continues with a state of :meth:`get_own_state`, of as many environments.

        Raises:
            ValueError: The state is not one of this wrapper. Nothing was changed.
        """
        self._check_own_state(state)
        self._restore(state)

    def _check_own_state(self, state: dict[str, Any]) -> None:
        check_state(state, self.get_own_state(), self._any_length)

    def _restore(self, state: dict[str, Any]) -> None:
        """Sets a checked state."""
        raise NotImplementedError
