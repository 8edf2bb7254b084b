"""Checks that batches fit a space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel.spaces.nested import ARRAY_SPACES

if TYPE_CHECKING:
    from gymnasium.spaces import Space


class Fit:
    """Checks results of a function against a space: nesting, dtypes, shapes and number of rows.

    Args:
        what: What the function returns, in errors.
        single: The space of one row.
    """

    def __init__(self, what: str, single: Space[Any]) -> None:
        """Keeps what a check of one array needs, because it is made in every step."""
        self._what, self._single = what, single
        is_leaf = isinstance(single, ARRAY_SPACES)
        self._dtype = single.dtype if is_leaf else None
        self._shape = tuple(single.shape or ()) if is_leaf else ()

    def check(self, batch: Any, rows: int) -> None:
        """Checks a batch.

        Args:
            batch: The result of the function.
            rows: The number of rows that it was given.

        Raises:
            ValueError: The batch does not fit the space.
        """
        if (
            isinstance(batch, np.ndarray)
            and batch.dtype == self._dtype
            and batch.shape == (rows, *self._shape)
        ):
            return
        found = misfit(self._single, batch, rows, "")
        if found is not None:
            raise ValueError(
                f"`func` returned {self._what} that do not fit the space: for {rows} rows of "
                f"{self._single}, {found}"
            )


def misfit(space: Space[Any], batch: Any, rows: int, where: str) -> str | None:
    """Says where a batch does not fit the space of one row; bounds are not looked at.

    Args:
        space: The space of one row.
        batch: Nested like the space.
        rows: The number of rows that it should have.
        where: The place within the whole, such as ``" at 'pixels'"``.

    Returns:
        A description, or ``None`` if the batch fits.
    """
    if isinstance(space, Dict):
        if not isinstance(batch, dict) or batch.keys() != space.spaces.keys():
            return f"a dict with the keys {list(space.spaces)} is needed{where}, got {_told(batch)}"
        places = [(part, batch[key], f"{where} at {key!r}") for key, part in space.spaces.items()]
    elif isinstance(space, Tuple):
        if not isinstance(batch, tuple) or len(batch) != len(space.spaces):
            return f"a tuple of {len(space.spaces)} is needed{where}, got {_told(batch)}"
        pairs = enumerate(zip(space.spaces, batch, strict=True))
        places = [(part, value, f"{where} at {number}") for number, (part, value) in pairs]
    elif isinstance(space, ARRAY_SPACES):
        wanted = (rows, *tuple(space.shape or ()))
        fits = (
            isinstance(batch, np.ndarray) and batch.dtype == space.dtype and batch.shape == wanted
        )
        if fits:
            return None
        return f"an array {wanted} of {space.dtype} is needed{where}, got {_told(batch)}"
    else:
        fits = isinstance(batch, tuple | list | np.ndarray) and len(batch) == rows
        return None if fits else f"{rows} values are needed{where}, got {_told(batch)}"
    found = (misfit(part, value, rows, place) for part, value, place in places)
    return next((text for text in found if text is not None), None)


def _told(batch: Any) -> str:
    if isinstance(batch, np.ndarray):
        return f"an array {batch.shape} of {batch.dtype}"
    if isinstance(batch, dict):
        return f"a dict with the keys {list(batch)}"
    return f"a {type(batch).__name__}" + (f" of {len(batch)}" if hasattr(batch, "__len__") else "")
