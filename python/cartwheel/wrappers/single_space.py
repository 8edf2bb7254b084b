"""Finds the space of one row of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple
from gymnasium.vector.utils import batch_space

if TYPE_CHECKING:
    from gymnasium.spaces import Space


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
