"""Arrays of any library, as NumPy's."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

DLPACK_CPU = 1


class SupportsDLPack(Protocol):
    """An array of any library that follows the Python array API standard's data interchange."""

    def __dlpack__(self, *, stream: None = ...) -> Any:
        """The array as a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Type and number of the device that the array is on."""


#: What every function takes.
Array: TypeAlias = ArrayLike | SupportsDLPack


def as_array(name: str, array: Array) -> NDArray[Any]:
    """The array as NumPy's, without a copy where it is an array already.

    Raises:
        TypeError: It is on another device than the CPU.
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
