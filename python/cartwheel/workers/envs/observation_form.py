"""Forms of observations: how exactly an environment's observation is made of the arrays of a batch.

A batch has arrays alone, in the order of the space. An environment may show ``3`` where the space
has an ``int64``, and the keys of a dictionary in another order. The worker compares the form of
each observation with that of the last one that it sent as an object. If they are equal, the
observation goes through shared memory, and the caller makes it again from the form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete, Space

from cartwheel._internal.spaces import describe, has_fixed_shape

if TYPE_CHECKING:
    from collections.abc import Callable

#: The form of an array.
_ARRAY = "array"
#: The space of what never goes through shared memory.
NO_SPACE: Discrete = Discrete(1)


def shared(space: Space[Any] | None) -> Space[Any]:
    """Returns the space if its values can be in shared memory, otherwise :data:`NO_SPACE`."""
    return NO_SPACE if space is None or not has_fixed_shape(space) else space


class ObservationForms:
    """Forms of the observations of one space.

    Attributes:
        blank: Zeros in the form of the space.
    """

    def __init__(self, space: Space[Any]) -> None:
        """Describes the space, whose values have a fixed shape."""
        self._description = _with_dtypes(describe(space))
        self.blank = _zeros(self._description)

    def form_of(self, observation: Any) -> Any:
        """Returns the form of an observation; ``None`` if it does not fit the space exactly."""
        return _form_of(observation, self._description)

    def test_of(self, form: Any) -> Callable[[Any], bool]:
        """Returns a function that says whether an observation has this form.

        Args:
            form: The form; ``None`` for one that no observation has.
        """
        if form is None:
            return lambda _: False
        description = self._description
        if form != _ARRAY:
            return lambda observation: bool(_form_of(observation, description) == form)
        _, dtype, shape = description

        # The form of most environments, in a function that calls no other: a process that steps
        # once when it is woken has nothing in its caches.
        def is_array(observation: Any) -> bool:
            return (
                type(observation) is np.ndarray
                and observation.shape == shape
                and bool(observation.dtype == dtype)
            )

        return is_array


def _with_dtypes(description: Any) -> Any:
    if description[0] == "leaf":
        return ("leaf", np.dtype(description[1]), description[2])
    if description[0] == "dict":
        return ("dict", {key: _with_dtypes(part) for key, part in description[1]})
    return ("tuple", [_with_dtypes(part) for part in description[1]])


def _zeros(description: Any) -> Any:
    kind, parts, *shape = description
    if kind == "leaf":
        return np.zeros(shape[0], parts)
    if kind == "dict":
        return {key: _zeros(part) for key, part in parts.items()}
    return tuple(_zeros(part) for part in parts)


def _form_of(value: Any, description: Any) -> Any:
    kind, parts, *shape = description
    if kind == "leaf":
        if type(value) is np.ndarray:
            return _ARRAY if value.dtype == parts and value.shape == shape[0] else None
        fits = shape[0] == () and (
            type(value) is parts.type or (type(value) is int and parts == np.int64)
        )
        return type(value) if fits and _is_small(value) else None
    if kind == "dict":
        if type(value) is not dict or value.keys() != parts.keys():
            return None
        forms: Any = {key: _form_of(part, parts[key]) for key, part in value.items()}
        return None if None in forms.values() else ("dict", tuple(forms.items()))
    if type(value) is not tuple or len(value) != len(parts):
        return None
    forms = tuple(map(_form_of, value, parts))
    return None if None in forms else ("tuple", forms)


def _is_small(value: Any) -> bool:
    return type(value) is not int or -(2**63) <= value < 2**63


def remade(form: Any, batch: Any, place: int) -> Any:
    """Returns the observation of a place of a batch, as the environment showed it; a copy."""
    if form == _ARRAY:
        return np.array(batch[place])
    if isinstance(form, type):
        return form(batch[place])
    kind, parts = form
    if kind == "dict":
        return {key: remade(part, batch[key], place) for key, part in parts}
    return tuple(remade(part, values, place) for part, values in zip(parts, batch, strict=True))
