"""Statistics over valid rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cartwheel._cartwheel as native
from cartwheel._internal.nested import as_array
from cartwheel.returns.arrays import FLOATS, as_flags, as_output, as_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cartwheel._internal.nested import Array


def masked_mean(x: Array, valid: Array) -> float:
    """Returns the mean over the valid rows, summed in ``float64``.

    Use it for every number that is reported or minimized: losses, entropy, explained variance.

    Args:
        x: Numbers of any shape, ``float32`` or ``float64``.
        valid: Flags of the same shape.

    Returns:
        The mean.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: The shapes differ, or no row is valid.
    """
    numbers, mask = _same_shape(x, valid)
    return native.masked_mean(numbers.reshape(-1), mask.reshape(-1))


def masked_normalize(
    x: Array, valid: Array, *, epsilon: float = 1e-8, out: Array | None = None
) -> NDArray[Any]:
    """Returns ``(x - mean) / (std + epsilon)``, with statistics of the valid rows.

    Mean and standard deviation are computed in ``float64``, in two passes. The standard deviation
    divides by the number of rows, as in NumPy (torch divides by one less).

    Args:
        x: Numbers of any shape, ``float32`` or ``float64``.
        valid: Flags of the same shape.
        epsilon: A positive number, which prevents a division by 0 if all numbers are equal.
        out: An array of the same shape and dtype.

    Returns:
        Numbers of mean 0 and standard deviation 1, in the dtype of ``x``; 0 where rows are not
        valid.

    Raises:
        TypeError: A dtype is wrong.
        ValueError: The shapes differ, no row is valid, ``epsilon`` is not positive, or ``out``
            cannot be filled.
    """
    numbers, mask = _same_shape(x, valid)
    inputs = {"x": numbers, "valid": mask}
    output = as_output("the result", out, numbers.shape, numbers.dtype, inputs)
    native.masked_normalize(numbers.reshape(-1), mask.reshape(-1), epsilon, output.reshape(-1))
    return output


def _same_shape(x: Array, valid: Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Checks that both arrays have the same shape, and returns them."""
    numbers, mask = as_array("x", x), as_flags("valid", valid, None)
    if numbers.dtype not in FLOATS:
        raise TypeError(f"`x` must be float32 or float64, got {numbers.dtype}.")
    if numbers.shape != mask.shape:
        raise ValueError(f"`valid` must have shape {numbers.shape} like `x`, got {mask.shape}.")
    return as_rows("x", numbers, None), mask
