"""Arrays of a rollout for the native side: NumPy, C-contiguous, of one dtype."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.literals import Bootstrap, check_choice
from cartwheel._internal.nested import as_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from cartwheel._internal.nested import Array

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def as_floats(**arrays: Array) -> tuple[np.dtype[Any], tuple[NDArray[Any], ...]]:
    """Returns the arrays, and the dtype that all of them have.

    Raises:
        TypeError: A dtype is neither ``float32`` nor ``float64``, or two dtypes differ.
        ValueError: An array does not have two dimensions.
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
    """Returns the rewards in ``dtype``; ``None`` keeps their own dtype.

    Raises:
        TypeError: The rewards are not real numbers; or ``dtype`` is ``None``, and their own dtype
            is neither ``float32`` nor ``float64``.
        ValueError: The rewards do not have two dimensions.
    """
    if dtype is None:
        return as_floats(rewards=rewards)[1][0]
    array = as_array("rewards", rewards)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`rewards` must be real numbers, got {array.dtype}.")
    return as_rows("rewards", array.astype(dtype, copy=False))


def as_numbers(name: str, numbers: Array, dtype: np.dtype[Any]) -> float | NDArray[Any]:
    """Returns one number for all rows as a float, or an array with a number for each row.

    Raises:
        TypeError: The array has another dtype than ``dtype``, or a value is not a number.
        ValueError: The array does not have two dimensions.
    """
    if isinstance(numbers, float):
        return float(numbers)
    array = as_array(name, numbers)
    if array.dtype.kind not in "iuf" or (array.ndim and array.dtype != dtype):
        kind = f"a number or a {dtype} array"
        raise TypeError(f"`{name}` must be {kind}, got dtype {array.dtype}.")
    return as_rows(name, array) if array.ndim else float(array)


def as_flags(name: str, flags: Array, ndim: int | None = 2) -> NDArray[np.bool_]:
    """Returns flags as a ``bool`` array of ``ndim`` dimensions; ``None``: of any number.

    Raises:
        TypeError: The flags are neither ``bool`` nor ``uint8``.
        ValueError: The number of dimensions is wrong.
    """
    array = as_array(name, flags)
    if array.dtype == np.uint8:
        array = array != 0
    if array.dtype != np.bool_:
        raise TypeError(f"`{name}` must be bool or uint8, got {array.dtype}.")
    return as_rows(name, array, ndim)


def as_rows(name: str, array: NDArray[Any], ndim: int | None = 2) -> NDArray[Any]:
    """Returns the array, copied if it is not C-contiguous and aligned.

    Raises:
        ValueError: The array does not have ``ndim`` dimensions.
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
    """Returns an array for a result: ``out``, or a new array.

    Raises:
        TypeError: ``out`` has another dtype.
        ValueError: ``out`` has another shape, is not C-contiguous or writable, or shares memory
            with one of ``inputs``.
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
    """Returns arrays for several results, in the order of ``dtypes``.

    Raises:
        TypeError: ``out`` is not a tuple, or an array has another dtype.
        ValueError: As for :func:`as_output`; or the number of arrays is wrong.
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


@dataclasses.dataclass(frozen=True)
class Transitions:
    """Checked arrays, whose attributes the native side reads by name.

    Attributes:
        rewards: Rewards ``[T, N]``, in the dtype of the computation.
        terminated: Flags ``[T, N]``.
        truncated: Flags ``[T, N]``.
        valid: Flags ``[T, N]``, or ``None`` if every row is a transition.
        gamma: A float, or an array ``[T, N]`` in the dtype of the computation.
        bootstrap: One of :data:`~cartwheel._internal.literals.Bootstrap`.
        num_threads: At least 1, or ``None`` for as many as are faster.
    """

    rewards: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_] | None
    gamma: float | NDArray[Any]
    bootstrap: str
    num_threads: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps and environments."""
        return self.rewards.shape


def as_transitions(
    rewards: Array,
    terminated: Array,
    truncated: Array,
    valid: Array | None,
    gamma: Array,
    bootstrap: str,
    num_threads: int | None,
    *,
    dtype: np.dtype[Any] | None,
) -> Transitions:
    """Checks all arguments except the shapes, which the native side compares.

    They are those of the estimators. ``dtype`` is that of the other arrays; ``None`` keeps the
    dtype of the rewards.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: A number of dimensions is wrong, a name is unknown, or threads are below 1.
    """
    check_choice("bootstrap", bootstrap, Bootstrap)
    if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
        raise ValueError(f"`num_threads` must be a positive integer or None, got {num_threads!r}.")
    rewards = as_rewards(rewards, dtype)
    return Transitions(
        rewards,
        as_flags("terminated", terminated),
        as_flags("truncated", truncated),
        None if valid is None else as_flags("valid", valid),
        as_numbers("gamma", gamma, rewards.dtype),
        bootstrap,
        num_threads,
    )
