"""Observations of several agents with equal spaces in one array for each leaf."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.workers.envs.agents_layout import AgentsSettings, Group

#: Spaces of which a value has parts.
_NESTED = (Dict, Tuple)


class AgentValues(list[Any]):
    """The values of a group of agents for one leaf, which the worker copies if they are like it.

    Other values, of another dtype for instance, are converted here, where agents have names. A
    subclass for each leaf has the attributes: an instance is made in each step.
    """

    names: ClassVar[list[Any]]
    leaf: ClassVar[Space[Any]]
    path: ClassVar[tuple[Any, ...]]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Returns the stacked values.

        Raises:
            ValueError: An observation has another shape than its space.
            TypeError: It has another kind of dtype.
        """
        pairs = zip(self.names, self, strict=True)
        return np.stack([_fitted(value, self.leaf, name, self.path) for name, value in pairs])

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Is pickled, and copied, as the stacked values, which fit the space."""
        return self.__array__().__reduce_ex__(protocol)


class ObservationStack:
    """Stacks the observations of a group of agents; absent ones are blank.

    Attributes:
        key: The key of the group.
        space: The space of the stacked observations.
    """

    def __init__(self, group: Group, names: list[Any], settings: AgentsSettings) -> None:
        self.key = group.key
        self.space = group.stacked_space()
        self._names = names
        self._of_all = in_order(names)
        #: Makes the stack of a list of observations.
        self._stacked = self._in_arrays(group.space, ()) if group.is_fixed else tuple
        self._blank: Any
        if group.is_fixed:
            self._blank = nested.each(lambda part: _blank(part, settings.absent), group.space)
        else:
            empty: Any = create_empty_array(group.space, n=1)
            self._blank = next(iter(iterate(batch_space(group.space, 1), empty)))

    def stack_all(self, observations: dict[Any, Any]) -> Any:
        """Returns the stacked observations of agents that are all present.

        Raises:
            KeyError: One is not.
            ValueError: An observation has another shape than its space.
            TypeError: It has another kind of dtype, or is nested in another way.
        """
        return self._stacked(self._of_all(observations))

    def stack(self, observations: dict[Any, Any], present: Container[Any]) -> Any:
        """Returns the stacked observations of the agents that are present.

        Raises:
            Exception: As :meth:`stack_all`.
        """
        blank = self._blank
        return self._stacked(
            [observations[name] if name in present else blank for name in self._names]
        )

    def _in_arrays(
        self, space: Space[Any], path: tuple[Any, ...]
    ) -> Callable[[Sequence[Any]], Any]:
        """Returns what stacks values of a space with arrays, nested as the space."""
        names = self._names
        if not isinstance(space, _NESTED):
            if space.shape:
                leaf = {"names": names, "leaf": space, "path": path, "__slots__": ()}
                return type(AgentValues.__name__, (AgentValues,), leaf)
            return lambda values: [
                _fitted(value, space, name, path) for name, value in zip(names, values, strict=True)
            ]
        parts = {key: self._in_arrays(part, (*path, key)) for key, part in nested.parts(space)}

        def stacked(values: Sequence[Any]) -> Any:
            pairs = list(zip(names, values, strict=True))
            found = {
                key: stack([_part(value, key, name, path) for name, value in pairs])
                for key, stack in parts.items()
            }
            return found if isinstance(space, Dict) else tuple(found.values())

        return stacked


def in_order(names: Sequence[Any]) -> Callable[[dict[Any, Any]], tuple[Any, ...]]:
    """Returns what returns the entries of a dictionary in the order of ``names``."""
    if len(names) == 1:
        (name,) = names
        return lambda by_name: (by_name[name],)
    return operator.itemgetter(*names)


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


def _fitted(value: Any, space: Space[Any], name: Any, path: tuple[Any, ...]) -> NDArray[Any]:
    """Returns a value as an array with the dtype and the shape of its space."""
    array, dtype = np.asarray(value), space.dtype
    assert dtype is not None, "spaces with arrays have a dtype"
    if array.dtype != dtype:
        is_integer = array.dtype.kind in "biu" and dtype.kind in "iu"
        if not is_integer and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(
                f"the observation of agent {name!r}{_at(path)} must be {dtype}, as its space, got "
                f"{array.dtype}"
            )
        array = array.astype(dtype)
    if array.shape != space.shape:
        raise ValueError(
            f"the observation of agent {name!r}{_at(path)} must have the shape {space.shape} of "
            f"its space, got {array.shape}"
        )
    return array


def _at(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in path)
