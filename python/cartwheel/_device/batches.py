"""Batches as one piece: of a slab, or packed into pinned memory; and tensors of its copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel._cartwheel import SlabLease
from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._device.transfers import Transfers

#: The alignment of arrays in a piece, that of slabs.
_ALIGN = 64


class Results(NamedTuple):
    """The arrays of a batch that have one place for each row.

    Attributes:
        leaves: Of the observations, in their order.
        finals: Of dense final observations; none if there are none.
        ended: The mask of these; ``None`` if there are none.
        outcomes: Rewards, terminations and truncations; none in the batch of a reset.
    """

    leaves: Sequence[NDArray[Any]]
    finals: Sequence[NDArray[Any]] = ()
    ended: NDArray[Any] | None = None
    outcomes: Sequence[NDArray[Any]] = ()

    def arrays(self) -> list[NDArray[Any]]:
        """All arrays, in the order in which a slab has them."""
        ended = () if self.ended is None else (self.ended,)
        return [*self.leaves, *self.finals, *ended, *self.outcomes]


class Piece(NamedTuple):
    """Host memory that is copied at once.

    Attributes:
        memory: A tensor of bytes.
        places: The offset of each array.
    """

    memory: Any
    places: list[int]


class DeviceBatches:
    """Sends the batches of one wrapper to a device.

    The results of a batch travel in one copy, and everything else, if there is anything, in a
    second one. A tensor is never overwritten, unless the memory is static.
    """

    def __init__(
        self, transfers: Transfers, space: Space[Any], rows: int, *, static: bool, depth: int
    ) -> None:
        """Allocates nothing on the device.

        Args:
            transfers: Makes the copies.
            space: The observation space of one environment.
            rows: The maximum number of rows of a batch.
            static: Whether results have one of ``depth`` fixed places.
            depth: The maximum number of copies in flight.

        Raises:
            ValueError: Static memory for observations without a fixed size.
        """
        import torch

        self._torch: Any = torch
        self._transfers, self._rows, self._depth = transfers, rows, depth
        self._dtypes: dict[np.dtype[Any], Any] = {}
        size = _max_bytes(space, rows)
        if static and size is None:
            raise ValueError(
                f"static=True needs observations of a fixed size, and {space} has parts without."
            )
        self._is_static = static
        #: The places of results on the device in turn, and the tensors that were made of each.
        self._rooms: list[tuple[Any, dict[Any, list[Any]]]] = []
        self._next = 0
        #: The bytes of the next batch as far as known, and memory for it.
        self._expected = size or 0
        self._prepared: Any = None

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether there are tensors of this dtype."""
        return self._dtype(array.dtype) is not None

    def prepare(self) -> None:
        """Allocates memory for the next batch, so that a shortage is an error before the step.

        Raises:
            RuntimeError: There is not enough memory on the device.
            ForkedProcessError: In a forked child.
        """
        self._transfers.check_process()
        device = self._transfers.device
        if self._is_static:
            while len(self._rooms) < self._depth:
                self._rooms.append((device.empty(self._expected), {}))
        elif self._prepared is None and self._expected:
            self._prepared = device.empty(self._expected)

    def send(self, results: Results, others: Iterable[NDArray[Any]] = ()) -> dict[int, Any]:
        """Sends the arrays of a batch.

        Args:
            results: The arrays of the rows; written to the slab, if they are in one.
            others: All other arrays.

        Returns:
            Tensors by the ``id`` of the array.

        Raises:
            RuntimeError: There is not enough memory on the device, or the device failed.
            ForkedProcessError: In a forked child.
        """
        self.prepare()
        arrays, further = results.arrays(), list(others)
        piece = self._in_slab(results) or self._packed(arrays, self._rows_of(arrays))
        room, made = self._room(piece.memory.numel())
        copies = [(room[: piece.memory.numel()], piece.memory)]
        if further:
            second = self._packed(further, 1)
            copies.append((self._transfers.device.empty(second.memory.numel()), second.memory))
        if made is not None:
            self._transfers.device.follow()
        self._transfers.send(copies, self._depth)
        tensors = self._views(room, piece.places, arrays, made)
        if further:
            tensors = tensors + self._views(copies[1][0], second.places, further, None)
        return {id(array): tensor for array, tensor in zip(arrays + further, tensors, strict=True)}

    def _rows_of(self, arrays: list[NDArray[Any]]) -> int:
        """The rows for which a piece has places: with static memory, those of a full batch."""
        rows = len(arrays[0]) if arrays and arrays[0].ndim else 1
        return max(rows, self._rows) if self._is_static else rows

    def _in_slab(self, results: Results) -> Piece | None:
        """The piece of a slab that has these results; ``None`` if they are not all in one."""
        leaves = results.leaves
        if not (self._transfers.has_slabs and leaves and isinstance(leaves[0].base, SlabLease)):
            return None
        lease = leaves[0].base
        found = lease.results()
        if found is None:
            return None
        memory, (ended, *outcomes) = found
        start, rows = _address(memory), len(leaves[0])
        places = []
        for array in (*leaves, *results.finals):
            if array.base is not lease or not array.flags.c_contiguous:
                return None
            places.append(_address(array) - start)
        rest = list(zip(results.outcomes, outcomes, (np.float64, np.bool_, np.bool_), strict=False))
        if results.ended is not None:
            if ended is None:
                return None
            rest.insert(0, (results.ended, ended, np.bool_))
        if any(array.dtype != dtype or array.shape != (rows,) for array, _, dtype in rest):
            return None
        if not self._transfers.registrations.covers(start, memory.nbytes):
            return None
        for array, place, dtype in rest:  # wrappers may have others; and flags become 0 and 1
            np.ndarray((rows,), dtype, memory, place)[:] = array
            places.append(place)
        return Piece(self._torch.from_numpy(memory), places)

    def _packed(self, arrays: list[NDArray[Any]], rows: int) -> Piece:
        """A copy of arrays in pinned memory, with places for arrays of so many rows."""
        places, end = [], 0
        for array in arrays:
            places.append(end)
            size = array.nbytes
            if array.ndim and 0 < len(array) < rows:
                size = size // len(array) * rows
            end += -(-size // _ALIGN) * _ALIGN
        memory = self._transfers.device.staging(max(end, _ALIGN))
        host = memory.numpy()
        for array, place in zip(arrays, places, strict=True):
            dtype = array.dtype.newbyteorder("=")
            np.ndarray(array.shape, dtype, host, place)[...] = array
        return Piece(memory, places)

    def _room(self, nbytes: int) -> tuple[Any, dict[Any, list[Any]] | None]:
        """Memory on the device for results; and the tensors of it, if it is static."""
        nbytes = -(-nbytes // _ALIGN) * _ALIGN
        if self._is_static:
            room, made = self._rooms[self._next]
            self._next = (self._next + 1) % self._depth
            return room[:nbytes], made
        room, self._prepared = self._prepared, None
        fits = room is not None and nbytes <= room.numel() <= 2 * nbytes
        self._expected = nbytes
        return (room if fits else self._transfers.device.empty(nbytes)), None

    def _views(
        self,
        room: Any,
        places: list[int],
        arrays: list[NDArray[Any]],
        made: dict[Any, list[Any]] | None,
    ) -> list[Any]:
        """Tensors of the copies of arrays."""
        form = tuple(zip(places, [(array.dtype, array.shape) for array in arrays], strict=True))
        if made is not None and form in made:
            return made[form]
        by_dtype: dict[Any, Any] = {}
        tensors = []
        for place, (dtype, shape) in form:
            kind = self._dtype(dtype)
            if kind not in by_dtype:
                by_dtype[kind] = room.view(kind)
            strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
            tensors.append(by_dtype[kind].as_strided(shape, strides, place // dtype.itemsize))
        if made is not None:
            made[form] = tensors
        return tensors

    def _dtype(self, dtype: np.dtype[Any]) -> Any:
        """PyTorch's dtype; ``None`` if it has none."""
        if dtype not in self._dtypes:
            try:
                like = self._torch.from_numpy(np.empty(0, dtype.newbyteorder("=")))
                self._dtypes[dtype] = like.dtype
            except TypeError:
                self._dtypes[dtype] = None
        return self._dtypes[dtype]


def collected(tree: Any, accepts: Callable[[NDArray[Any]], bool]) -> list[NDArray[Any]]:
    """The arrays of nested observations for which ``accepts`` is true."""
    found: list[NDArray[Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, np.ndarray) and accepts(value):
            found.append(value)

    nested.apply(collect, tree)
    return found


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _max_bytes(space: Space[Any], rows: int) -> int | None:
    """The bytes of the results of so many rows; ``None`` if they have no fixed size.

    Final observations count: the memory is there before it is known whether a batch has them.
    """
    total = 0
    for leaf in nested.leaves(space):
        if isinstance(leaf, Dict | Tuple) or not isinstance(leaf, nested.ARRAY_SPACES):
            return None
        assert leaf.dtype is not None
        size = rows * math.prod(leaf.shape or ()) * leaf.dtype.itemsize
        total += 2 * -(-size // _ALIGN) * _ALIGN
    return total + -(-rows * 8 // _ALIGN) * _ALIGN + 3 * -(-rows // _ALIGN) * _ALIGN
