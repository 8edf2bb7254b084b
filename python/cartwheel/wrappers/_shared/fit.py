"""Results of the caller's functions: the space of one row, and whether a batch fits it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space, Tuple
from gymnasium.vector.utils import batch_space

from cartwheel._internal.nested import ARRAY_SPACES


class Fit:
    """Checks results of a function against a space: nesting, dtypes, shapes and number of rows.

    Args:
        what: The name of the result in errors.
        single: The space of one row.
    """

    def __init__(self, what: str, single: Space[Any]) -> None:
        """Computes what a check of one array needs, because every step makes one."""
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
        found = _mismatch(self._single, batch, rows, "")
        if found is not None:
            raise ValueError(
                f"`func` returned {self._what} that do not fit the space: for {rows} rows of "
                f"{self._single}, {found}"
            )


def _mismatch(space: Space[Any], batch: Any, rows: int, where: str) -> str | None:
    """Describes where a batch does not fit the space of one row; bounds are not checked.

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
    found = (_mismatch(part, value, rows, place) for part, value, place in places)
    return next((text for text in found if text is not None), None)


def _told(batch: Any) -> str:
    if isinstance(batch, np.ndarray):
        return f"an array {batch.shape} of {batch.dtype}"
    if isinstance(batch, dict):
        return f"a dict with the keys {list(batch)}"
    return f"a {type(batch).__name__}" + (f" of {len(batch)}" if hasattr(batch, "__len__") else "")


def single_space(
    name: str,
    batched: Space[Any] | None,
    single: Space[Any] | None,
    unchanged: Space[Any],
    rows: int,
) -> Space[Any]:
    """Returns the space of one row of the results of a function.

    Args:
        name: The name of the argument ``batched``, for errors.
        batched: The space of a batch, if it was given.
        single: The space of one row, if it was given; otherwise it is found from ``batched``.
        unchanged: The space of one row if neither was given.
        rows: The rows of the batch.

    Raises:
        ValueError: The two contradict each other, or the space of one row cannot be found.
    """
    if batched is None:
        return unchanged if single is None else single
    found = _row(batched) if single is None else single
    if found is not None and batch_space(found, rows) == batched:
        return found
    if single is None:
        raise ValueError(
            f"the space of one environment cannot be derived from the space {batched} of a batch "
            f"of {rows}: give `single_{name}`."
        )
    raise ValueError(
        f"`{name}` {batched} is not the batch of {rows} times `single_{name}` {single}."
    )


def _row(batched: Space[Any]) -> Space[Any] | None:
    if isinstance(batched, Dict):
        named = {key: _row(part) for key, part in batched.spaces.items()}
        found = {key: part for key, part in named.items() if part is not None}
        return Dict(found) if len(found) == len(named) else None
    if isinstance(batched, Tuple):
        rows = [row for row in map(_row, batched.spaces) if row is not None]
        return Tuple(rows) if len(rows) == len(batched.spaces) else None
    if isinstance(batched, Box) and batched.shape:
        return Box(batched.low[0], batched.high[0], dtype=batched.dtype.type)
    if isinstance(batched, MultiDiscrete) and batched.nvec.ndim == 1:
        return Discrete(int(batched.nvec[0]), start=int(batched.start[0]), dtype=batched.dtype.type)
    return None
