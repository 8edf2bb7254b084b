"""Rows of batches of any space: taken out and put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Space, Tuple

from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray


def chosen_actions(space: Space[Any], batch: Any, places: NDArray[np.intp]) -> Any:
    """Some rows of a batch, of which a leaf may be any array or list."""
    if isinstance(space, Dict) and isinstance(batch, dict):
        return {key: chosen_actions(part, batch[key], places) for key, part in space.spaces.items()}
    if isinstance(space, Tuple) and isinstance(batch, tuple):
        pairs = zip(space.spaces, batch, strict=True)
        return tuple(chosen_actions(part, values, places) for part, values in pairs)
    return nested.take(space, batch if isinstance(batch, tuple) else np.asarray(batch), places)


def put(space: Space[Any], batch: Any, places: NDArray[np.intp], source: Any) -> Any:
    """A copy of a batch with other rows at some places."""
    if not nested.has_leaf(space):
        return batch
    size = len(places)
    rows = np.arange(nested.count(space, batch))
    rows[places] = len(rows) + np.arange(size)
    return joined(space, batch, source, rows)


def joined(space: Space[Any], first: Any, second: Any, order: NDArray[np.intp]) -> Any:
    """The rows of two batches, one after the other, in an order."""

    def ordered(_: Any, one: Any, other: Any) -> Any:
        if isinstance(one, np.ndarray):
            return np.concatenate([one, other])[order]
        both = (*one, *other)
        return tuple(both[place] for place in order)

    return nested.each(ordered, space, first, second)
