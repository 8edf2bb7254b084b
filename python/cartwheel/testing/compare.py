"""The first place where two values differ, in types, dtypes, shapes or bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import GraphInstance

#: A key path, such as ``['camera'][3, 2]``, and the two values there, as text.
Difference = tuple[str, str, str]


def first_difference(one: Any, other: Any, path: str = "") -> Difference | None:
    """Compares two values at every level of nesting.

    Two NaNs are the same. Objects of a class without ``==`` are the same if their types are.

    Args:
        one: A value: arrays, numbers, text, dictionaries, lists and tuples of them, or any object.
        other: The value to compare with.
        path: The key path of both.

    Returns:
        The first difference, or ``None``.
    """
    if isinstance(one, GraphInstance) and isinstance(other, GraphInstance):
        one, other = one._asdict(), other._asdict()
    if type(one) is not type(other):
        return path, _typed(one), _typed(other)
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return path, f"keys {sorted(map(str, one))}", f"keys {sorted(map(str, other))}"
        return _first([(f"{path}[{key!r}]", one[key], other[key]) for key in one])
    if isinstance(one, tuple | list):
        if len(one) != len(other):
            return path, f"{len(one)} values", f"{len(other)} values"
        pairs = enumerate(zip(one, other, strict=True))
        return _first([(f"{path}[{at}]", *pair) for at, pair in pairs])
    if isinstance(one, np.ndarray | np.generic | float | complex):
        return _of_arrays(np.asarray(one), np.asarray(other), path)
    has_equality = "__eq__" in {name for each in type(one).__mro__[:-1] for name in vars(each)}
    return None if not has_equality or one == other else (path, repr(one), repr(other))


def _first(pairs: list[tuple[str, Any, Any]]) -> Difference | None:
    found = (first_difference(one, other, path) for path, one, other in pairs)
    return next((each for each in found if each is not None), None)


def _of_arrays(one: Any, other: Any, path: str) -> Difference | None:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return path, _typed(one), _typed(other)
    if one.dtype.hasobject:
        indices = [tuple(map(int, index)) for index in np.ndindex(one.shape)]
        return _first([(f"{path}{list(index)}", one[index], other[index]) for index in indices])
    if one.tobytes() == other.tobytes():
        return None
    differs = (_bits(one) != _bits(other)).reshape(one.shape)
    if one.dtype.kind in "fc":
        differs &= ~(np.isnan(one) & np.isnan(other))
    if not differs.any():
        return None
    index = tuple(int(place) for place in np.argwhere(differs)[0])
    where = f"{path}[{', '.join(map(str, index))}]" if index else path
    return where, repr(one[index].item()), repr(other[index].item())


def _bits(array: Any) -> Any:
    """One opaque value for each element, shape ``(size,)``."""
    return np.ascontiguousarray(array).reshape(-1).view(f"V{array.dtype.itemsize}")


def _typed(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"{value!r} ({type(value).__name__})"
