"""Observations and actions, nested like their spaces: arrays, or dicts and tuples of arrays.

:func:`apply`, :func:`at` and :func:`assign` work on nested arrays without their space.
:func:`each`, :func:`take`, :func:`join`, :func:`stack` and :func:`put` need the space, because a
batch of a space without a fixed shape is a tuple, too: it has one object for each row.

:func:`as_array` converts arrays of any library to NumPy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gymnasium.spaces import Space

#: Spaces whose batches are arrays.
ARRAY_SPACES = (Box, Discrete, MultiDiscrete, MultiBinary)


def apply(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Applies ``function`` to every array of ``tree`` (and its counterparts in ``others``)."""
    if isinstance(tree, dict):
        return {
            key: apply(function, part, *(other[key] for other in others))
            for key, part in tree.items()
        }
    if isinstance(tree, tuple):
        return tuple(apply(function, *parts) for parts in zip(tree, *others, strict=True))
    return function(tree, *others)


def at(tree: Any, index: Any) -> Any:
    """Returns every array at ``index``: a view or a copy, as by NumPy's indexing."""
    if isinstance(tree, np.ndarray):
        return tree[index]
    return apply(lambda array: array[index], tree)


def concat(trees: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates the corresponding arrays, or PyTorch tensors, of the trees along an axis."""

    def joined(*arrays: Any) -> Any:
        if isinstance(arrays[0], np.ndarray):
            return np.concatenate(arrays, axis)
        import torch

        return torch.cat(arrays, axis)

    return apply(joined, *trees)


def assign(tree: Any, index: Any, source: Any) -> None:
    """Writes ``source`` to ``tree[index]``, array by array."""
    if isinstance(tree, dict | tuple):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            assign(tree[key], index, source[key])
    else:
        tree[index] = source


def parts(space: Space[Any]) -> Iterable[tuple[Any, Space[Any]]]:
    """Returns the parts of a ``Dict`` or ``Tuple`` space, with their keys or places."""
    if isinstance(space, Dict):
        return space.spaces.items()
    return enumerate(space.spaces) if isinstance(space, Tuple) else ()


def leaves(space: Space[Any]) -> Iterator[Space[Any]]:
    """Yields the spaces that are nested in ``Dict`` and ``Tuple`` spaces, or the space itself."""
    if isinstance(space, Dict | Tuple):
        for _, part in parts(space):
            yield from leaves(part)
    else:
        yield space


def count(space: Space[Any], batch: Any) -> int:
    """Returns the number of rows of a batch; 0 if it has no arrays."""
    if isinstance(space, Dict | Tuple):
        return next((count(part, batch[key]) for key, part in parts(space) if has_leaf(part)), 0)
    return len(batch)


def has_leaf(space: Space[Any]) -> bool:
    """Whether a space is not merely empty dictionaries and tuples."""
    return next(leaves(space), None) is not None


def each(function: Callable[..., Any], space: Space[Any], *values: Any) -> Any:
    """Applies ``function`` to every nested space and its part of ``values``, nested like these."""
    if isinstance(space, Dict):
        return {
            key: each(function, part, *(value[key] for value in values))
            for key, part in space.spaces.items()
        }
    if isinstance(space, Tuple):
        return tuple(each(function, *found) for found in zip(space.spaces, *values, strict=True))
    return function(space, *values)


def take(space: Space[Any], batch: Any, rows: NDArray[np.intp]) -> Any:
    """Returns some rows of a batch as a new batch; ``space`` is the space of one row."""
    if isinstance(batch, np.ndarray):  # before spaces, which are slow to tell apart
        return batch[rows]

    def taken(_: Any, part: Any) -> Any:
        return part[rows] if isinstance(part, np.ndarray) else tuple(part[row] for row in rows)

    return each(taken, space, batch)


def join(space: Space[Any], batches: Sequence[Any]) -> Any:
    """Returns a batch of the rows of all ``batches``; ``space`` is the space of one row."""

    def joined(_: Any, *found: Any) -> Any:
        if isinstance(found[0], np.ndarray):
            return np.concatenate(found)
        return tuple(itertools.chain.from_iterable(found))

    return each(joined, space, *batches)


def rows(space: Space[Any] | None, batch: Any, count: int) -> list[Any]:
    """Returns the rows of a batch, in the form in which an environment returns observations.

    Args:
        space: The space of one row; ``None`` for nested arrays.
        batch: The rows; those that are arrays are views.
        count: The number of rows, which a batch without arrays does not have.

    Returns:
        One value for each row; a Python integer in a ``Discrete`` space.
    """
    if isinstance(batch, dict):
        spaces = space.spaces if isinstance(space, Dict) else {}
        columns = [rows(spaces.get(key), part, count) for key, part in batch.items()]
        return [dict(zip(batch, row, strict=True)) for row in _across(columns, count)]
    if isinstance(space, Tuple) or (space is None and isinstance(batch, tuple)):
        places = [None] * len(batch) if space is None else space.spaces
        pairs = zip(places, batch, strict=True)
        return _across([rows(part, values, count) for part, values in pairs], count)
    if isinstance(space, Discrete):
        integers: list[Any] = np.asarray(batch).tolist()
        return integers
    return list(batch)


def _across(columns: list[list[Any]], count: int) -> list[tuple[Any, ...]]:
    """Rows from columns, of which there may be none."""
    return list(zip(*columns, strict=True)) if columns else [()] * count


def stack(space: Space[Any], rows: Sequence[Any]) -> Any:
    """Returns a batch of single observations or actions; ``space`` is the space of one row."""
    if isinstance(space, Box) and space.shape and rows:
        joined = np.concatenate(rows)  # three times as fast as Gymnasium's function
        wanted = (len(rows) * space.shape[0], *space.shape[1:])
        if joined.shape == wanted and joined.dtype == space.dtype:
            return joined.reshape((len(rows), *space.shape))
    batch: Any = create_empty_array(space, len(rows), fn=np.empty)
    return concatenate(space, rows, batch) if rows else batch


def put(space: Space[Any], batch: Any, rows: NDArray[np.intp], source: Any) -> Any:
    """Returns a copy of ``batch`` with ``source`` at ``rows``; ``space`` is the space of one row.

    A batch that is not nested like the space, such as a list of actions, is taken as one array. It
    gets the dtype of both, so that no number is cut off.
    """
    if isinstance(source, dict) and isinstance(space, Dict):
        parts = space.spaces.items()
        return {key: put(part, batch[key], rows, source[key]) for key, part in parts}
    if isinstance(source, tuple) and isinstance(space, Tuple):
        triples = zip(space.spaces, batch, source, strict=True)
        return tuple(put(part, old, rows, new) for part, old, new in triples)
    if isinstance(batch, tuple) and not isinstance(space, ARRAY_SPACES):
        values = dict(zip(rows.tolist(), source, strict=True))
        return tuple(values.get(row, value) for row, value in enumerate(batch))
    merged, given = np.array(batch), np.asarray(source)
    merged = merged.astype(np.promote_types(merged.dtype, given.dtype), copy=False)
    merged[rows] = given
    return merged


def paths(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], NDArray[Any]]]:
    """Yields every array with its path, which begins with ``path``."""
    if isinstance(tree, dict | tuple):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(part, (*path, key))
    else:
        yield path, tree


def has_text(space: Space[Any]) -> bool:
    """Whether a part of the space is a ``Text``."""
    return any(isinstance(leaf, Text) for leaf in leaves(space))


def with_text_arrays(space: Space[Any], batch: Any) -> Any:
    """Returns a batch whose texts, tuples of strings, are arrays of objects."""

    def with_array(space: Space[Any], part: Any) -> Any:
        return np.array(part, object) if isinstance(space, Text) else part

    return each(with_array, space, batch)


def named(tree: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields every array with its path, ``name/key/…``; the path of a single array is ``name``."""
    return (("/".join(map(str, path)), array) for path, array in paths(tree, (name,)))


def empty(space: Space[Any], steps: int, name: str) -> Any:
    """Makes arrays ``[steps, *shape]`` for a (batched) space.

    Raises:
        TypeError: The space has parts without a fixed shape.
    """
    arrays = create_empty_array(space, steps, fn=np.empty)
    for path, array in named(arrays, name):
        if not isinstance(array, np.ndarray) or array.dtype == object:
            if isinstance(array, str):  # row and step
                path = path.rsplit("/", 2)[0]
            raise TypeError(
                f"a rollout needs arrays, but the space of `{path}` has no fixed shape. "
                "FilterObservation leaves parts of observations out, and FlattenObservation makes "
                "texts numbers (`cartwheel.wrappers`)."
            )
    return arrays


def as_batch(like: Any, batch: Any, name: str) -> Any:
    """Converts ``batch`` to NumPy arrays that fit one step of ``like``, which has a time axis.

    Raises:
        TypeError: ``batch`` is nested in another way, or has another kind of dtype.
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
            f"`{name}` must have shape {shape}, with one entry for each environment, got "
            f"{array.shape}."
        )
    if array.dtype != like.dtype and not np.can_cast(array.dtype, like.dtype, "same_kind"):
        raise TypeError(f"`{name}` must be {like.dtype}, got {array.dtype}.")
    return array


DLPACK_CPU = 1


class SupportsDLPack(Protocol):
    """An array of any library that follows the Python array API standard's data interchange."""

    def __dlpack__(self, *, stream: None = ...) -> Any:
        """Returns the array as a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Returns type and number of the array's device."""


#: Any array that cartwheel accepts.
Array: TypeAlias = ArrayLike | SupportsDLPack


def as_array(name: str, array: Array) -> NDArray[Any]:
    """Returns the array as a NumPy array, without a copy if it is an array on the CPU.

    Raises:
        TypeError: The array is on another device than the CPU, or its library does not export it:
            PyTorch exports no tensors with gradients, and NumPy lacks some dtypes.
        ValueError: It has lists of several lengths.
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__dlpack_device__"):
        exporter = cast("SupportsDLPack", array)
        device = int(exporter.__dlpack_device__()[0])
        if device != DLPACK_CPU:
            raise TypeError(
                f"`{name}` must be on the CPU, got DLPack device type {device}: move it first."
            )
        try:
            return np.from_dlpack(exporter)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"`{name}` cannot be read as a NumPy array: {error}") from error
    try:
        return np.asarray(array)
    except ValueError as error:
        raise ValueError(f"`{name}` is not an array: {error}") from None
