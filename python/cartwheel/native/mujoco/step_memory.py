"""The memory that a step of MuJoCo uses most, which Rust lets the processor load ahead of the step.

Nothing but speed depends on these addresses: Rust neither reads nor writes there.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    #: First address and number of bytes.
    Range = tuple[int, int]

#: Bytes of the structs that a step uses: of ``mjModel`` from its beginning, of ``mjData`` from its
#: beginning and from ``solver_niter``, since the statistics of the solver stand between.
_MODEL_STRUCT, _DATA_HEAD, _DATA_TAIL = 6144, 128, 2048
#: Bytes at both ends of the arena: contacts and constraints, and MuJoCo's stack.
_ARENA_END = 2048
#: Arrays of a model of more bytes are textures, meshes and the like.
_LARGE_ARRAY = 4096
#: Bytes between two arrays that are one range, and number of ranges of arrays.
_GAP, _MAX_RANGES = 256, 3


def of_data(data: Any) -> list[Range]:
    """Returns the memory of a ``mujoco.MjData``."""
    first, size = data.qpos.ctypes.data, data.nbuffer
    tail = data.solver_niter.ctypes.data
    ranges = [(data._address, _DATA_HEAD), (tail, _DATA_TAIL), (first, size)]
    energy = data.energy.ctypes.data
    # Two pointers follow it in each release from 3.2 on; the first one is checked.
    buffer, arena = (ctypes.c_size_t * 2).from_address(energy + data.energy.nbytes)
    if buffer <= first <= buffer + size:
        ranges += [(arena, _ARENA_END), (arena + data.narena - _ARENA_END, _ARENA_END)]
    return ranges


class ModelRanges:
    """The memory of a model and of its copies, in which arrays have the same distances."""

    def __init__(self, model: Any) -> None:
        """Looks the arrays of a ``mujoco.MjModel`` up."""
        first = model.qpos0.ctypes.data  # the first array of all
        arrays = (getattr(model, name, None) for name in dir(model))
        found = [
            (array.ctypes.data - first, array.nbytes)
            for array in arrays
            if isinstance(array, np.ndarray) and 0 < array.nbytes <= _LARGE_ARRAY
        ]
        inside = _joined(each for each in found if 0 <= each[0] < model.nbuffer)
        self._arrays = sorted(inside, key=lambda joined: joined[1])[-_MAX_RANGES:]

    def of(self, model: Any) -> list[Range]:
        """Returns the memory of a copy."""
        first = model.qpos0.ctypes.data
        return [
            (model._address, _MODEL_STRUCT),
            *((first + start, size) for start, size in self._arrays),
        ]


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """Joins ranges with small gaps between them."""
    joined: list[Range] = []
    for start, size in sorted(ranges):
        if joined and start - sum(joined[-1]) <= _GAP:
            begin, before = joined[-1]
            joined[-1] = begin, max(before, start + size - begin)
        else:
            joined.append((start, size))
    return joined
