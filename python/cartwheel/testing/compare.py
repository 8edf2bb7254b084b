"""The first place where two values differ, in types, dtypes, shapes or bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import GraphInstance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: A key path, such as ``['camera'][3, 2]``, and the two values there, as text.
Difference = tuple[str, str, str]

_SEQUENCES = (tuple, list)
_NUMBERS = (np.ndarray, np.generic, float, complex)
_IDENTITY: Any = object.__eq__


def first_difference(one: Any, other: Any) -> Difference | None:
    """Compares two values at every level of nesting.

    Two NaNs are the same. Objects of a class without ``==`` are the same if their types are.

    Args:
        one: A value: arrays, numbers, text, dictionaries, lists and tuples of them, or any object.
        other: The value to compare with.

    Returns:
        The first difference, or ``None``.
    """
    if one is other:
        return None
    if isinstance(one, GraphInstance) and isinstance(other, GraphInstance):
        one, other = one._asdict(), other._asdict()
    if type(one) is not type(other):
        return "", _typed(one), _typed(other)
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return "", f"keys {sorted(map(str, one))}", f"keys {sorted(map(str, other))}"
        return _first("[{!r}]".format, ((key, one[key], other[key]) for key in one))
    if isinstance(one, _SEQUENCES):
        if len(one) != len(other):
            return "", f"{len(one)} values", f"{len(other)} values"
        pairs = enumerate(zip(one, other, strict=True))
        return _first("[{}]".format, ((at, *pair) for at, pair in pairs))
    if isinstance(one, _NUMBERS):
        return _of_arrays(np.asarray(one), np.asarray(other))
    has_equality = type(one).__eq__ is not _IDENTITY
    return ("", repr(one), repr(other)) if has_equality and one != other else None


def _first(name: Callable[[Any], str], parts: Iterable[tuple[Any, Any, Any]]) -> Difference | None:
    """The first difference of parts, of which each has a key; ``name`` is the path of a key."""
    for key, one, other in parts:
        found = first_difference(one, other)
        if found is not None:
            path, *values = found
            return name(key) + path, values[0], values[1]
    return None


def _of_arrays(one: Any, other: Any) -> Difference | None:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return "", _typed(one), _typed(other)
    if one.dtype.hasobject:
        indices = [tuple(map(int, index)) for index in np.ndindex(one.shape)]
        parts = ((index, one[index], other[index]) for index in indices)
        return _first(lambda index: str(list(index)), parts)
    if one.tobytes() == other.tobytes():
        return None
    differs = (_bits(one) != _bits(other)).reshape(one.shape)
    if one.dtype.kind in "fc":
        differs &= ~(np.isnan(one) & np.isnan(other))
    if not differs.any():
        return None
    index = tuple(int(place) for place in np.argwhere(differs)[0])
    where = f"[{', '.join(map(str, index))}]" if index else ""
    return where, repr(one[index].item()), repr(other[index].item())


def _bits(array: Any) -> Any:
    """One opaque value for each element, shape ``(size,)``."""
    return np.ascontiguousarray(array).reshape(-1).view(f"V{array.dtype.itemsize}")


def _typed(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"{value!r} ({type(value).__name__})"
