"""Numbers of ``MjData``, such as ``time`` and ``ncon``, as arrays in its memory.

MuJoCo's module for Python has no addresses of them. They stand between two arrays of the struct;
setting each of them in the data of an empty model shows where.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.native.mujoco.library import load_mujoco

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The dtypes of numbers that have an address here, by their types in Python.
_DTYPES: dict[type, type[np.generic]] = {float: np.float64, int: np.int32}
#: Values that a number is set to: the place is the one that has each of them.
_PROBES = (1234567, 7654321)


def number(data: Any, name: str) -> NDArray[Any] | None:
    """Returns a number of a ``mujoco.MjData`` as an array of shape ``()`` in its memory.

    ``None`` if it has no such number, or if this MuJoCo does not let it be set.
    """
    dtype = _DTYPES.get(type(getattr(data, name, None)))
    offset = None if dtype is None else _offset(name)
    if dtype is None or offset is None:
        return None
    address = _window(data)[0] + offset
    memory = (ctypes.c_char * np.dtype(dtype).itemsize).from_address(address)
    return np.frombuffer(memoryview(memory), dtype).reshape(())


def _window(data: Any) -> tuple[int, int]:
    """Returns the addresses between which numbers stand, the first a multiple of 8."""
    first, end = data.solver_niter.ctypes.data, data.energy.ctypes.data
    return first - first % 8, end - end % 8


@functools.cache
def _offset(name: str) -> int | None:
    """Returns the distance of a number from the first address, in bytes."""
    mujoco = load_mujoco("cartwheel.mujoco")
    data = mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))
    first, end = _window(data)
    before = getattr(data, name)
    kind = type(before)
    memory = (ctypes.c_char * (end - first)).from_address(first)
    values = np.frombuffer(memoryview(memory), _DTYPES[kind])
    places = set(range(len(values)))
    for probe in map(kind, _PROBES):
        try:
            setattr(data, name, probe)
        except (AttributeError, TypeError):
            return None
        places &= set(np.flatnonzero(values == probe).tolist())
        setattr(data, name, before)  # it may be a pointer, or a size that the destructor reads
    return places.pop() * values.itemsize if len(places) == 1 else None
