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

    from cartwheel._device.device import Device
    from cartwheel._device.transfers import Transfers

    #: Offset in a piece, dtype and shape of each array.
    Form = tuple[tuple[int, np.dtype[Any], tuple[int, ...]], ...]

#: The alignment of arrays in a piece, that of slabs.
_ALIGN = 64
#: The maximum number of batches for which memory is allocated at once, and of their bytes.
_MAX_PLACES = 16
_SHARED = 1 << 20


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


class Places:
    """Memory of a device for a few batches of the same size, and tensors of it.

    Each tensor has a version counter of its own, so that autograd does not take a change of the
    rewards, or the next batch, for a change of the observations.

    Attributes:
        memory: A tensor of bytes.
        count: The number of places.
        size: The bytes of each.
    """

    def __init__(self, torch: Any, memory: Any, count: int) -> None:
        """Divides ``memory`` into ``count`` places."""
        self._torch = torch
        self.memory, self.count, self.size = memory, count, memory.numel() // count
        self._targets: dict[int, Any] = {}
        self._tensors: dict[Form, list[list[Any]]] = {}

    def target(self, place: int, nbytes: int) -> Any:
        """The first bytes of a place."""
        if self.count == 1:
            return self.memory[:nbytes]
        if nbytes not in self._targets:
            targets = self.memory.as_strided((self.count, nbytes), (self.size, 1))
            self._targets[nbytes] = targets.unbind(0)
        return self._targets[nbytes][place]

    def tensors(self, place: int, form: Form) -> list[Any]:
        """Tensors of a place, in their form: offset, dtype and shape of each."""
        if form not in self._tensors:
            with self._torch.inference_mode(False):  # the caller may use them outside of it
                self._tensors[form] = [self._column(*each) for each in form]
        return [column[place] for column in self._tensors[form]]

    def _column(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[Any]:
        """A tensor of each place."""
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        size = dtype.itemsize
        memory = self.memory.view(_torch_dtype(self._torch, dtype))
        if self.count == 1:
            return [memory.as_strided(shape, strides, offset // size).data]
        column = memory.as_strided(
            (self.count, *shape), (self.size // size, *strides), offset // size
        )
        return [tensor.data for tensor in column.unbind(0)]


class Supply:
    """Memory of a device for the batches to come.

    Small batches get it for several at once, as long as they have the same size: allocating memory
    and making tensors takes longer than their copies. So a tensor that is kept may keep the memory
    of :data:`_MAX_PLACES` batches, up to :data:`_SHARED` bytes.
    """

    def __init__(self, torch: Any, device: Device, size: int, *, fixed: int | None) -> None:
        """Allocates nothing.

        Args:
            torch: The module.
            device: Has the memory.
            size: The bytes of the next batch, as far as known.
            fixed: The number of places that are used in turn; ``None`` for new ones.
        """
        self._torch, self._device, self._size, self._fixed = torch, device, size, fixed
        self._places: Places | None = None
        self._next, self._count = 0, 1 if fixed is None else fixed

    def prepare(self) -> None:
        """Allocates memory for the next batch, if its size is known."""
        if self._places is None and self._size:
            self._allocate(self._size)

    def take(self, nbytes: int, form: Form) -> tuple[Any, Any, list[Any]]:
        """Returns memory for a batch: all of its piece, the target of a copy, and tensors."""
        places, size, is_fixed = self._places, _aligned(nbytes), self._fixed is not None
        if places is None or size > places.size or (2 * size < places.size and not is_fixed):
            self._count = self._fixed or 1
            places = self._allocate(size)
        place = self._next
        found = places.memory, places.target(place, nbytes), places.tensors(place, form)
        self._next += 1
        if self._next == places.count:
            self._next = 0
            if not is_fixed:
                self._places, self._size = None, size
                self._count = max(1, min(2 * self._count, _MAX_PLACES, _SHARED // size))
        return found

    def _allocate(self, size: int) -> Places:
        with self._torch.inference_mode(False):  # later copies may be outside of it
            memory = self._device.empty(size * self._count)
        self._places, self._next = Places(self._torch, memory, self._count), 0
        return self._places


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
        self._accepted: dict[np.dtype[Any], bool] = {}
        size = _max_bytes(space, rows)
        if static and size is None:
            raise ValueError(
                f"static=True needs observations of a fixed size, and {space} has parts without."
            )
        self._is_static = static
        fixed = depth if static else None
        self._results = Supply(torch, transfers.device, size or 0, fixed=fixed)
        self._others = Supply(torch, transfers.device, 0, fixed=None)

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether there are tensors of this dtype."""
        dtype = array.dtype
        if dtype not in self._accepted:
            self._accepted[dtype] = _torch_dtype(self._torch, dtype) is not None
        return self._accepted[dtype]

    def prepare(self) -> None:
        """Allocates memory for the next batch, so that a shortage is an error before the step.

        Raises:
            RuntimeError: There is not enough memory on the device.
            ForkedProcessError: In a forked child.
        """
        self._transfers.land()
        self._results.prepare()
        self._others.prepare()

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
        self._transfers.land()
        arrays, further = results.arrays(), list(others)
        piece = self._in_slab(results) or self._packed(arrays, self._rows_of(arrays))
        memory, target, tensors = self._results.take(*self._size_and_form(piece, arrays))
        copies, memories = [(target, piece.memory)], [memory]
        if further:
            piece = self._packed(further, 1)
            memory, target, more = self._others.take(*self._size_and_form(piece, further))
            copies.append((target, piece.memory))
            memories.append(memory)
            arrays, tensors = arrays + further, tensors + more
        if self._is_static:
            self._transfers.device.follow()
        self._transfers.send(copies, memories, self._depth)
        return {id(array): tensor for array, tensor in zip(arrays, tensors, strict=True)}

    def _size_and_form(self, piece: Piece, arrays: list[NDArray[Any]]) -> tuple[int, Form]:
        form = zip(piece.places, arrays, strict=True)
        return piece.memory.numel(), tuple((at, array.dtype, array.shape) for at, array in form)

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
        memory, (ended, rewards, terminations, truncations) = found
        start, rows = _address(memory), len(leaves[0])
        places = []
        for array in (*leaves, *results.finals):
            if array.base is not lease or not array.flags.c_contiguous:
                return None
            places.append(_address(array) - start)
        rest: list[tuple[NDArray[Any], int, Any]] = []
        if results.ended is not None:
            if ended is None:
                return None
            rest.append((results.ended, ended, np.bool_))
        if results.outcomes:
            earned, *flags = results.outcomes
            if len(earned) != rows or earned.nbytes > terminations - rewards:
                return None
            rest.append((earned, rewards, np.float64))
            rest += zip(flags, (terminations, truncations), (np.bool_, np.bool_), strict=True)
        if any(
            array.dtype != dtype or (dtype is np.bool_ and array.shape != (rows,))
            for array, _, dtype in rest
        ):
            return None
        if not self._transfers.registrations.covers(start, memory.nbytes):
            return None
        for array, place, dtype in rest:  # wrappers may have others; and flags become 0 and 1
            np.ndarray(array.shape, dtype, memory, place)[...] = array
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
            end += _aligned(size)
        memory = self._transfers.device.staging(max(end, _ALIGN))
        host = memory.numpy()
        for array, place in zip(arrays, places, strict=True):
            dtype = array.dtype.newbyteorder("=")
            np.ndarray(array.shape, dtype, host, place)[...] = array
        return Piece(memory, places)


def _torch_dtype(torch: Any, dtype: np.dtype[Any]) -> Any:
    """PyTorch's dtype; ``None`` if it has none."""
    try:
        return torch.from_numpy(np.empty(0, dtype.newbyteorder("="))).dtype
    except TypeError:
        return None


def collected(tree: Any, accepts: Callable[[NDArray[Any]], bool]) -> list[NDArray[Any]]:
    """The arrays of nested observations for which ``accepts`` is true."""
    found: list[NDArray[Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, np.ndarray) and accepts(value):
            found.append(value)

    nested.apply(collect, tree)
    return found


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGN) * _ALIGN


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
        total += 2 * _aligned(size)
    return total + _aligned(rows * 8) + 3 * _aligned(rows)
