"""Check ``written``: native environments write every element of an observation, always.

A native environment writes into memory that holds an older observation. Two runs with the same
seeds and actions differ only where an element was not written, if that memory was filled with a
pattern of its own in each run: the arrays that a step returns are the caller's, and once they are
dropped, a later batch is written into them. Small batches are copied, so there are enough rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import COPIED_BYTES
from cartwheel._internal import nested
from cartwheel.native.vector_env import NativeVectorEnv
from cartwheel.testing.report import Unchecked
from cartwheel.testing.values import leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.testing.kit import Kit
    from cartwheel.testing.player import Batch

_REMEDY = (
    "Write every element of an observation, zeros too: the memory holds an older observation. "
    "Begin with `fill(0)` where some elements are not set."
)
#: Calls after which all memory that is used again has been filled.
_WARM_UP = 8


def check_written(kit: Kit) -> str:
    """No element of an observation shows what the memory held before."""
    if not isinstance(kit.given, NativeVectorEnv):
        raise Unchecked("cartwheel itself writes the observations of environments in Python")
    one, other = _bytes_over(kit, 0x00), _bytes_over(kit, 0xA5)
    for name, first, second in zip(one.names, one.batches, other.batches, strict=True):
        unwritten = first != second  # [calls, rows, elements, bytes]
        unwritten = unwritten.any(axis=-1)
        if not unwritten.any():
            continue
        never = unwritten[_WARM_UP:].all(axis=(0, 1))
        if never.all():
            kit.fail(f"{name} is never written", _REMEDY)
        call, row, element = (int(place) for place in np.argwhere(unwritten)[0])
        if never.any():
            element = int(np.flatnonzero(never)[0])
            kit.fail(f"element {element} of {name} is never written", _REMEDY)
        kit.fail(
            f"element {element} of {name} is not always written: not in row {row} in call {call} "
            "after the reset",
            _REMEDY,
        )
    return f"{', '.join(one.names)}: {one.calls} calls × {one.rows} rows"


class _Filler:
    """Copies the observations of every batch of a player, then fills their memory.

    Attributes:
        names: The key path of each leaf.
        calls: The number of batches.
        rows: The rows of a batch.
    """

    def __init__(self, space: Any, pattern: int) -> None:
        self._space = space
        self._pattern = pattern
        self._copies: list[list[NDArray[np.uint8]]] = []
        self.names: list[str] = []
        self.calls = self.rows = 0

    def __call__(self, call: int, result: Batch) -> None:
        del call
        found = leaves(self._space, result[0], "observation")
        # Texts are strings, which have no memory of the batch.
        arrays = [(path, leaf) for path, _, leaf in found if isinstance(leaf, np.ndarray)]
        self.names = [path for path, _ in arrays]
        self._copies.append([])
        for _, array in arrays:
            if array.base is None:
                raise Unchecked("batches are copied before they are returned")
            rows, width = len(array), array.dtype.itemsize
            elements = array.size // rows
            memory = array.reshape(rows, elements).view(np.uint8).reshape(rows, elements, width)
            self._copies[-1].append(memory.copy())
            memory[...] = self._pattern
        self.calls, self.rows = self.calls + 1, rows

    @property
    def batches(self) -> list[NDArray[np.uint8]]:
        """For each leaf the bytes of all batches, of shape ``(calls, rows, elements, bytes)``."""
        return [np.stack(copies) for copies in zip(*self._copies, strict=True)]


def _bytes_over(kit: Kit, pattern: int) -> _Filler:
    """Plays rows whose memory is filled with ``pattern`` after every call."""
    row_bytes = sum(
        np.dtype(leaf.dtype).itemsize * math.prod(leaf.shape or ())
        for leaf in nested.leaves(kit.given.single_observation_space)
        if isinstance(leaf, nested.ARRAY_SPACES)
    )
    if not row_bytes:
        raise Unchecked("observations have no arrays")
    with kit.made(COPIED_BYTES // row_bytes + 1, limit=kit.short) as envs:
        filler = _Filler(envs.single_observation_space, pattern)
        player = kit.player(envs, inspect=filler)
        player.traces = {}  # the memory is filled before a trace is recorded
        player.reset(seed=kit.seed)
        player.run(kit.steps + _WARM_UP)
    return filler
