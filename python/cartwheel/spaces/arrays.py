"""Converts arrays of any library to NumPy."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        TypeError: The array is on another device than the CPU.
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__dlpack_device__"):
        speaker = cast("SupportsDLPack", array)
        device = int(speaker.__dlpack_device__()[0])
        if device != DLPACK_CPU:
            raise TypeError(
                f"`{name}` must be on the CPU, got DLPack device type {device}: move it first."
            )
        return np.from_dlpack(speaker)
    return np.asarray(array)
