"""Arrays of a rollout as the native side takes them: NumPy's, C-contiguous, of one dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.spaces.arrays import as_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from cartwheel.spaces.arrays import Array

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def as_floats(**arrays: Array) -> tuple[np.dtype[Any], tuple[NDArray[Any], ...]]:
    """The arrays, and the one dtype that all of them have.

    Raises:
        TypeError: One is neither ``float32`` nor ``float64``, or they are not the same.
        ValueError: One has not two dimensions.
    """
    found = {name: as_array(name, array) for name, array in arrays.items()}
    first = next(iter(found))
    dtype = found[first].dtype
    for name, array in found.items():
        if array.dtype not in FLOATS:
            raise TypeError(f"`{name}` must be float32 or float64, got {array.dtype}.")
        if array.dtype != dtype:
            raise TypeError(
                f"`{name}` must be {dtype} like `{first}`, got {array.dtype}: convert one of them."
            )
    return dtype, tuple(as_rows(name, array) for name, array in found.items())


def as_rewards(rewards: Array, dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """Rewards in ``dtype``, or in their own if that is ``None``.

    Raises:
        TypeError: They are no real numbers; or neither ``float32`` nor ``float64``, and so must
            stay.
        ValueError: They have not two dimensions.
    """
    if dtype is None:
        return as_floats(rewards=rewards)[1][0]
    array = as_array("rewards", rewards)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`rewards` must be real numbers, got {array.dtype}.")
    return as_rows("rewards", array.astype(dtype, copy=False))


def as_numbers(name: str, numbers: Array, dtype: np.dtype[Any]) -> float | NDArray[Any]:
    """A number for all rows as a float, or an array of one for each in ``dtype``.

    Raises:
        TypeError: It is an array of another dtype, or no number.
        ValueError: It is an array that has not two dimensions.
    """
    if isinstance(numbers, float):
        return float(numbers)
    array = as_array(name, numbers)
    if array.dtype.kind not in "iuf" or (array.ndim and array.dtype != dtype):
        kind = f"a number or a {dtype} array"
        raise TypeError(f"`{name}` must be {kind}, got dtype {array.dtype}.")
    return as_rows(name, array) if array.ndim else float(array)


def as_flags(name: str, flags: Array, ndim: int | None = 2) -> NDArray[np.bool_]:
    """Flags as an array of ``ndim`` dimensions, or of any number of them.

    Raises:
        TypeError: They are neither ``bool`` nor ``uint8``.
        ValueError: They have another number of dimensions.
    """
    array = as_array(name, flags)
    if array.dtype == np.uint8:
        array = array != 0
    if array.dtype != np.bool_:
        raise TypeError(f"`{name}` must be bool or uint8, got {array.dtype}.")
    return as_rows(name, array, ndim)


def as_rows(name: str, array: NDArray[Any], ndim: int | None = 2) -> NDArray[Any]:
    """The array, C-contiguous and aligned.

    Raises:
        ValueError: It has not ``ndim`` dimensions.
    """
    if ndim is not None and array.ndim != ndim:
        expected = {1: "one dimension (environments)", 2: "two dimensions (steps, environments)"}
        raise ValueError(f"`{name}` must have {expected[ndim]}, got shape {array.shape}.")
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, requirements=("C", "A"))


def as_output(
    name: str,
    out: Array | None,
    shape: tuple[int, ...],
    dtype: np.dtype[Any] | type[np.generic],
    inputs: Mapping[str, Any],
) -> NDArray[Any]:
    """An array to be filled: ``out``, or a new one.

    Raises:
        TypeError: It has another dtype.
        ValueError: It has another shape, is not C-contiguous or writable, or shares memory with one
            of ``inputs``.
    """
    if out is None:
        return np.empty(shape, dtype)
    array = as_array(name, out)
    if array.dtype != dtype:
        raise TypeError(f"`out` for {name} must be {np.dtype(dtype)}, got {array.dtype}.")
    if array.shape != shape:
        raise ValueError(f"`out` for {name} must have shape {shape}, got {array.shape}.")
    if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError(f"`out` for {name} must be C-contiguous, aligned and writable.")
    for other, used in inputs.items():
        if isinstance(used, np.ndarray) and np.may_share_memory(array, used):
            raise ValueError(f"`out` for {name} shares memory with `{other}`.")
    return array


def as_outputs(
    out: tuple[Array, ...] | None,
    shape: tuple[int, ...],
    dtypes: Mapping[str, np.dtype[Any] | type[np.generic]],
    inputs: Mapping[str, Any],
) -> tuple[NDArray[Any], ...]:
    """Several of them, by name in their order.

    Raises:
        TypeError: ``out`` is no tuple, or one has another dtype.
        ValueError: As for :func:`as_output`; or there is another number of them.
    """
    if out is None:
        return tuple(np.empty(shape, dtype) for dtype in dtypes.values())
    if not isinstance(out, tuple | list):
        raise TypeError(f"`out` must be a tuple of {', '.join(dtypes)}, got {type(out)}.")
    if len(out) != len(dtypes):
        raise ValueError(f"`out` must be a tuple of {', '.join(dtypes)}, got {len(out)} arrays.")
    used = dict(inputs)
    for one, (name, dtype) in zip(out, dtypes.items(), strict=True):
        used[name] = as_output(name, one, shape, dtype, used)
    return tuple(used[name] for name in dtypes)
