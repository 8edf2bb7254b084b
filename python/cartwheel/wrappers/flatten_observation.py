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

    Discrete parts become one-hot vectors. The dtype is the one to which all parts convert. Spaces
    that cannot be flattened to an array (``Graph``, ``Sequence``) stay nested as Gymnasium leaves
    them; they, and ``Text`` and ``OneOf``, are flattened row by row.

    Args:
        envs: A vector environment.

    Raises:
        NotImplementedError: Gymnasium cannot flatten the space.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Flattens the space."""
        super().__init__(envs)
        self._set_observation_space(flatten_space(self._space_before))
        self._is_regular = is_regular(self._space_before)

    def _observe(self, observations: Any) -> Any:
        if self._is_regular:
            return flatten_batch(self._space_before, observations)
        space, flat = self._space_before, self.single_observation_space
        size = nested.count(space, observations)
        values = [flatten(space, row) for row in nested.rows(space, observations, size)]
        return nested.stack(flat, values)


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
