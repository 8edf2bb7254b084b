"""Observations of several agents with equal spaces in one array for each leaf."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from gymnasium.spaces import Space

    from cartwheel.workers.agents_layout import AgentsSettings, Group

#: Buffers of observations that are used in turn: the observation that a row shows, that of a step
#: and that of the reset in the same step exist at once.
_BUFFERS = 3


class ObservationStack:
    """Stacks the observations of a group of agents; absent ones are blank.

    Attributes:
        key: The key of the group.
        space: The space of the stacked observations.
    """

    def __init__(self, group: Group, names: list[Any], settings: AgentsSettings) -> None:
        """Makes the buffers."""
        self.key = group.key
        self.space = group.stacked_space()
        self._names = names
        self._trees: Iterator[tuple[Any, list[Any]]] | None = None
        self._blank: Any = None
        if group.is_fixed:
            trees = [_blanks(group.space, len(names)) for _ in range(_BUFFERS)]
            self._trees = itertools.cycle(
                [(tree, _leaves(tree, settings.absent)) for tree in trees]
            )
        else:
            empty: Any = create_empty_array(group.space, n=1)
            self._blank = next(iter(iterate(batch_space(group.space, 1), empty)))

    def write(self, observations: dict[Any, Any], present: Container[Any]) -> Any:
        """Returns the stacked observations. The result is overwritten by the third next call.

        Raises:
            ValueError: An observation has another shape than its space.
            TypeError: It has another kind of dtype, or is nested in another way.
        """
        if self._trees is None:
            blank, names = self._blank, self._names
            return tuple(observations[name] if name in present else blank for name in names)
        tree, leaves = next(self._trees)
        for path, array, absent in leaves:
            dtype, shape = array.dtype, array.shape[1:]
            for at, name in enumerate(self._names):
                if name not in present:
                    array[at] = absent
                    continue
                value = observations[name]
                for key in path:
                    value = _part(value, key, name, path)
                if type(value) is not np.ndarray or value.dtype != dtype:
                    value = _as_dtype(value, dtype, name, path)
                if value.shape != shape:
                    raise ValueError(
                        f"the observation of agent {name!r}{_at(path)} must have the shape "
                        f"{shape} of its space, got {value.shape}"
                    )
                array[at] = value
        return tree


def _blanks(space: Space[Any], count: int) -> Any:
    """Returns zeros for so many values of a space, stacked."""

    def zeros(part: Space[Any]) -> Any:
        return np.zeros((count, *(part.shape or ())), part.dtype)

    return nested.each(zeros, space)


def _leaves(tree: Any, absent: float) -> list[Any]:
    """Returns path, array and the value of absent agents for each array."""
    return [
        (path, array, absent if array.dtype.kind in "fc" else array.dtype.type(0))
        for path, array in nested.paths(tree, ())
    ]


def _part(value: Any, key: Any, name: Any, path: tuple[Any, ...]) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        raise TypeError(
            f"the observation of agent {name!r} must have the part{_at(path)} of its space, got "
            f"{type(value)}"
        ) from None


def _as_dtype(value: Any, dtype: np.dtype[Any], name: Any, path: tuple[Any, ...]) -> Any:
    """Converts an observation to the dtype of its space."""
    array = np.asarray(value)
    is_integer = array.dtype.kind in "biu" and dtype.kind in "iu"
    if not is_integer and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(
            f"the observation of agent {name!r}{_at(path)} must be {dtype}, as its space, got "
            f"{array.dtype}"
        )
    return array.astype(dtype)


def _at(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in path)
