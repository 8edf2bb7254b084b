"""Observations and actions as their spaces nest them: arrays, or dicts and tuples of them.

:func:`apply`, :func:`at` and :func:`assign` take nested arrays as they are, and need no space.
:func:`take` and :func:`put` get the space, because a batch of a space without a fixed shape is a
tuple too: of one object a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Tuple
from gymnasium.vector.utils import create_empty_array

from cartwheel.spaces.arrays import as_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gymnasium.spaces import Space
    from numpy.typing import NDArray


def apply(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """``function`` of every array of ``tree`` (and of its like in ``others``), nested as before."""
    if isinstance(tree, dict):
        return {
            key: apply(function, part, *(other[key] for other in others))
            for key, part in tree.items()
        }
    if isinstance(tree, tuple):
        return tuple(apply(function, *parts) for parts in zip(tree, *others, strict=True))
    return function(tree, *others)


def at(tree: Any, index: Any) -> Any:
    """Every array at ``index``: a view or a copy, as NumPy's indexing gives them."""
    if isinstance(tree, np.ndarray):
        return tree[index]
    return apply(lambda array: array[index], tree)


def assign(tree: Any, index: Any, source: Any) -> None:
    """Writes ``source`` to ``tree[index]``, array by array."""
    if isinstance(tree, np.ndarray):
        tree[index] = source
        return
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        assign(tree[key], index, source[key])


def take(space: Space[Any], batch: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a batch of ``space``, which is that of one row, as a new batch."""
    if isinstance(space, Dict):
        return {key: take(part, batch[key], rows) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        pairs = zip(space.spaces, batch, strict=True)
        return tuple(take(part, values, rows) for part, values in pairs)
    if isinstance(batch, np.ndarray):
        return batch[rows]
    return tuple(batch[row] for row in rows)


def put(space: Space[Any], batch: Any, rows: NDArray[np.intp], source: Any) -> Any:
    """A new batch: ``batch`` of ``space``, which is that of one row, with ``source`` at ``rows``.

    What is not nested as the space is, such as a list of actions, is one array.
    """
    if isinstance(space, Dict) and isinstance(source, dict):
        parts = space.spaces.items()
        return {key: put(part, batch[key], rows, source[key]) for key, part in parts}
    if isinstance(space, Tuple) and isinstance(source, tuple):
        triples = zip(space.spaces, batch, source, strict=True)
        return tuple(put(part, old, rows, new) for part, old, new in triples)
    merged = np.array(batch)
    merged[rows] = source
    return merged


def named(tree: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array with its path, ``name/key/…``; an array that is not nested is ``name`` itself."""
    if isinstance(tree, dict | tuple):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from named(part, f"{name}/{key}")
    else:
        yield name, tree


def empty(space: Space[Any], steps: int, name: str) -> Any:
    """Arrays ``[steps, *shape]`` for a (batched) space.

    Raises:
        TypeError: The space has parts that are no arrays of fixed shape.
    """
    arrays = create_empty_array(space, steps, fn=np.empty)
    for path, array in named(arrays, name):
        if not isinstance(array, np.ndarray) or array.dtype == object:
            raise TypeError(
                f"a rollout holds arrays, but the space of `{path}` has no fixed shape: {space}"
            )
    return arrays


def as_batch(like: Any, batch: Any, name: str) -> Any:
    """``batch`` as NumPy arrays that fit one step of ``like``, whose arrays have a time axis.

    Raises:
        TypeError: It is nested in another way, or of another kind of dtype.
        ValueError: An array has another shape.
    """
    if isinstance(like, dict):
        if not isinstance(batch, dict) or batch.keys() != like.keys():
            raise TypeError(f"`{name}` must be a dict with the keys {list(like)}, got {batch!r}.")
        return {key: as_batch(part, batch[key], f"{name}/{key}") for key, part in like.items()}
    if isinstance(like, tuple):
        if not isinstance(batch, tuple) or len(batch) != len(like):
            raise TypeError(f"`{name}` must be a tuple of {len(like)} arrays, got {batch!r}.")
        parts = enumerate(zip(like, batch, strict=True))
        return tuple(as_batch(part, array, f"{name}/{i}") for i, (part, array) in parts)
    array = as_array(name, batch)
    shape = like.shape[1:]
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape}, the first number that of the environments; got "
            f"{array.shape}."
        )
    if array.dtype != like.dtype and not np.can_cast(array.dtype, like.dtype, "same_kind"):
        raise TypeError(f"`{name}` must be {like.dtype}, got {array.dtype}.")
    return array
