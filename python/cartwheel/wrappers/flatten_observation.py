"""Flattens observations to one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatten, flatten_space

from cartwheel.spaces import nested
from cartwheel.wrappers.observation_wrapper import ObservationWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray


class FlattenObservation(ObservationWrapper):
    """Flattens observations, as ``gymnasium.spaces.flatten`` does, all rows at once.

    Discrete parts become one-hot vectors, and empty parts nothing. The dtype is the one to which
    all parts convert. Spaces that cannot be flattened to an array (``Graph``, ``Sequence``) stay
    nested as Gymnasium leaves them; they, and ``Text`` and ``OneOf``, are flattened row by row.

    Args:
        envs: A vector environment.

    Raises:
        NotImplementedError: Gymnasium cannot flatten the space.
        TypeError: The space has no part but empty dictionaries and tuples.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Flattens the space."""
        super().__init__(envs)
        self._filled = without_empty(self._space_before)
        self._set_observation_space(flatten_space(self._filled))
        self._is_regular = is_regular(self._space_before)

    def _observe(self, observations: Any) -> Any:
        if self._is_regular:
            return flatten_batch(self._space_before, observations)
        space, flat = self._space_before, self.single_observation_space
        size = nested.count(space, observations)
        rows = nested.rows(space, observations, size)
        values = [flatten(self._filled, _filled(space, row)) for row in rows]
        return nested.stack(flat, values)


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


def _filled(space: Space[Any], value: Any) -> Any:
    """A value of the space, as one of the space without empty parts."""
    if not isinstance(space, Dict | Tuple):
        return value
    parts = [(key, part) for key, part in nested.parts(space) if nested.has_leaf(part)]
    if isinstance(space, Dict):
        return {key: _filled(part, value[key]) for key, part in parts}
    return tuple(_filled(part, value[key]) for key, part in parts)


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
    array: NDArray[Any] = np.asarray(batch, space.dtype).reshape(rows, -1)
    return array


def _one_hot(sizes: NDArray[Any], indices: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """One-hot vectors of several indices, one after the other."""
    ends = np.cumsum(sizes)
    hot = np.zeros((len(indices), int(ends[-1])), dtype)
    np.put_along_axis(hot, indices.astype(np.int64) + (ends - sizes), 1, axis=1)
    return hot
