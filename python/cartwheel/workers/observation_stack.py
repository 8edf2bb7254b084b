"""Observations of several agents with equal spaces in one array for each leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Container

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.workers.agents_layout import AgentsSettings, Group

#: Spaces of which a value has parts.
_NESTED = (Dict, Tuple)


class ObservationStack:
    """Stacks the observations of a group of agents; absent ones are blank.

    Attributes:
        key: The key of the group.
        space: The space of the stacked observations.
    """

    def __init__(self, group: Group, names: list[Any], settings: AgentsSettings) -> None:
        """Makes the observation of absent agents."""
        self.key = group.key
        self.space = group.stacked_space()
        self._names = names
        self._part = group.space
        self._is_fixed = group.is_fixed
        is_nested = isinstance(group.space, _NESTED)
        #: Dtype and shape, where the observation of an agent is one array.
        self._only = None if is_nested else (group.space.dtype, group.space.shape)
        self._blank: Any
        if group.is_fixed:
            self._blank = nested.each(lambda part: _blank(part, settings.absent), group.space)
        else:
            empty: Any = create_empty_array(group.space, n=1)
            self._blank = next(iter(iterate(batch_space(group.space, 1), empty)))

    def stack(self, observations: dict[Any, Any], present: Container[Any]) -> Any:
        """Returns a list of the agents' arrays for each leaf, which the worker copies once.

        Raises:
            ValueError: An observation has another shape than its space.
            TypeError: It has another kind of dtype, or is nested in another way.
        """
        blank = self._blank
        values = [observations[name] if name in present else blank for name in self._names]
        if not self._is_fixed:
            return tuple(values)
        if self._only is not None:
            return self._leaf(values, *self._only, ())
        return self._leaves(self._part, values, ())

    def _leaves(self, space: Space[Any], values: list[Any], path: tuple[Any, ...]) -> Any:
        """Returns the lists of all leaves, nested as the space."""
        if not isinstance(space, _NESTED):
            return self._leaf(values, space.dtype, space.shape, path)
        pairs = list(zip(self._names, values, strict=True))
        found = {
            key: self._leaves(
                part, [_part(value, key, name, path) for name, value in pairs], (*path, key)
            )
            for key, part in nested.parts(space)
        }
        return found if isinstance(space, Dict) else tuple(found.values())

    def _leaf(self, values: list[Any], dtype: Any, shape: Any, path: tuple[Any, ...]) -> list[Any]:
        """Makes arrays of the values, in the same list."""
        for at, value in enumerate(values):
            if type(value) is np.ndarray and value.dtype == dtype and value.shape == shape:
                continue
            name, array = self._names[at], np.asarray(value)
            if array.dtype != dtype:
                array = _as_dtype(array, dtype, name, path)
            if array.shape != shape:
                raise ValueError(
                    f"the observation of agent {name!r}{_at(path)} must have the shape {shape} of "
                    f"its space, got {array.shape}"
                )
            values[at] = array
        return values


def _blank(space: Space[Any], absent: float) -> Any:
    """Returns the value of absent agents in a space whose values are arrays."""
    value = absent if np.dtype(space.dtype).kind in "fc" else 0
    return np.full(space.shape or (), value, space.dtype)


def _part(value: Any, key: Any, name: Any, path: tuple[Any, ...]) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        raise TypeError(
            f"the observation of agent {name!r} must have the part{_at((*path, key))} of its "
            f"space, got {type(value)}"
        ) from None


def _as_dtype(array: NDArray[Any], dtype: Any, name: Any, path: tuple[Any, ...]) -> NDArray[Any]:
    """Converts an observation to the dtype of its space."""
    is_integer = array.dtype.kind in "biu" and dtype.kind in "iu"
    if not is_integer and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(
            f"the observation of agent {name!r}{_at(path)} must be {dtype}, as its space, got "
            f"{array.dtype}"
        )
    return array.astype(dtype)


def _at(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in path)
