"""Batches of nested values as flat arrays, for observations and actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiDiscrete, Tuple

from cartwheel._internal import nested

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


def without_empty(space: Space[Any]) -> Space[Any]:
    """The space without empty dictionaries and tuples, which Gymnasium cannot flatten.

    Raises:
        TypeError: It has no other part.
    """
    if not nested.has_leaf(space):
        raise TypeError(f"there is nothing to flatten in {space}")
    if not isinstance(space, Dict | Tuple):
        return space
    parts = {key: without_empty(part) for key, part in nested.parts(space) if nested.has_leaf(part)}
    # Pairs keep the order of the parts.
    return Dict([*parts.items()]) if isinstance(space, Dict) else Tuple([*parts.values()])


def filled(space: Space[Any], value: Any) -> Any:
    """A value of the space, as one of the space without empty parts."""
    if not isinstance(space, Dict | Tuple):
        return value
    parts = [(key, part) for key, part in nested.parts(space) if nested.has_leaf(part)]
    if isinstance(space, Dict):
        return {key: filled(part, value[key]) for key, part in parts}
    return tuple(filled(part, value[key]) for key, part in parts)


def is_regular(space: Space[Any]) -> bool:
    """Whether all parts are arrays of fixed shape."""
    return all(isinstance(leaf, nested.ARRAY_SPACES) for leaf in nested.leaves(space))


def flatten_batch(space: Space[Any], batch: Any) -> NDArray[Any]:
    """Flattens a batch of values of a space without irregular parts, ``[K, D]``."""
    if isinstance(space, Dict | Tuple):
        parts = [(key, part) for key, part in nested.parts(space) if nested.has_leaf(part)]
        columns = [flatten_batch(part, batch[key]) for key, part in parts]
        return np.concatenate(columns, axis=1)
    rows = len(batch)
    if isinstance(space, Discrete):
        return _one_hot(np.array([space.n]), (batch - space.start)[:, None], space.dtype)
    if isinstance(space, MultiDiscrete):
        return _one_hot(space.nvec.ravel(), (batch - space.start).reshape(rows, -1), space.dtype)
    return np.asarray(batch, space.dtype).reshape(rows, -1)


def _one_hot(sizes: NDArray[Any], indices: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """One-hot vectors of several indices, one after the other."""
    sizes = sizes.astype(np.int64)  # with unsigned ones, sums would be floating-point numbers
    ends = np.cumsum(sizes)
    hot = np.zeros((len(indices), int(ends[-1])), dtype)
    np.put_along_axis(hot, indices.astype(np.int64) + (ends - sizes), 1, axis=1)
    return hot
