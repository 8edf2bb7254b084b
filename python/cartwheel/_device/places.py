"""Memory for the batches to come: of a device, and pinned memory of the host.

Allocating memory and making views takes longer than the copy of a small batch, so both are done
for several batches at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._device.device import Device, Event

    #: Offset in a piece, dtype and shape of each array.
    Form = tuple[tuple[int, np.dtype[Any], tuple[int, ...]], ...]

#: The alignment of arrays in a piece, that of slabs.
ALIGN = 64
#: The maximum number of batches for which memory of a device is allocated at once, and of their
#: bytes.
MAX_PLACES = 16
SHARED = 4 << 20


class Layout:
    """The places of arrays in one piece of memory, looked at once for many batches.

    Attributes:
        nbytes: The size of the piece.
        columns: Of each array: PyTorch's dtype, bytes of an element, shape, strides and the number
            of its first element.
    """

    def __init__(self, torch: Any, form: Form, nbytes: int) -> None:
        self._form, self.nbytes = form, nbytes
        self.columns = [
            (
                torch_dtype(torch, dtype),
                dtype.itemsize,
                shape,
                tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))),
                at // dtype.itemsize,
            )
            for at, dtype, shape in form
        ]

    @classmethod
    def of_packed(cls, torch: Any, arrays: Sequence[NDArray[Any]], rows: int) -> Layout:
        """Arrays one after the other, each with room for ``rows`` rows."""
        form, end = [], 0
        for array in arrays:
            form.append((end, array.dtype.newbyteorder("="), array.shape))
            size = array.nbytes
            if array.ndim and 0 < len(array) < rows:
                size = size // len(array) * rows
            end += aligned(size)
        return cls(torch, tuple(form), max(end, ALIGN))

    @property
    def starts(self) -> list[int]:
        """The offset of each array."""
        return [at for at, _, _ in self._form]

    def views(self, host: NDArray[np.uint8], start: int = 0) -> list[NDArray[Any]]:
        """Arrays of the layout in memory of the host, from an offset on."""
        return [np.ndarray(shape, dtype, host, start + at) for at, dtype, shape in self._form]


class Places:
    """Memory of a device for a few batches of the same size, and tensors of it.

    Each tensor has a version counter of its own, so that autograd does not take a change of the
    rewards, or the next batch, for a change of the observations.

    Attributes:
        memory: A tensor of bytes.
        count: The number of places.
        size: The bytes of each.
        stream: The caller's stream in whose order it was allocated; ``None``: that of copies.
    """

    def __init__(self, torch: Any, memory: Any, count: int, stream: int | None) -> None:
        """Divides ``memory`` into ``count`` places."""
        self._torch = torch
        self.memory, self.count, self.stream = memory, count, stream
        self.size = memory.numel() // count
        self._targets: dict[int, Any] = {}
        self._tensors: dict[Layout, list[Any]] = {}

    def target(self, place: int, nbytes: int) -> Any:
        """The first bytes of a place."""
        if self.count == 1:
            return self.memory if nbytes == self.size else self.memory[:nbytes]
        if nbytes not in self._targets:
            targets = self.memory.as_strided((self.count, nbytes), (self.size, 1))
            self._targets[nbytes] = targets.unbind(0)
        return self._targets[nbytes][place]

    def tensors(self, place: int, layout: Layout) -> Any:
        """Tensors of a place."""
        found = self._tensors.get(layout)
        if found is None:
            if self._torch.is_inference_mode_enabled():  # the caller may use them outside of it
                with self._torch.inference_mode(False):
                    found = self._columns(layout)
            else:
                found = self._columns(layout)
            self._tensors[layout] = found
        return found[place]

    def _columns(self, layout: Layout) -> list[Any]:
        """The tensors of each place."""
        memory, count = self.memory, self.count
        if count == 1:
            return [
                [
                    memory.view(dtype).as_strided(shape, strides, first).data
                    for dtype, _, shape, strides, first in layout.columns
                ]
            ]
        columns = []
        for dtype, itemsize, shape, strides, first in layout.columns:
            shapes, steps = (count, *shape), (self.size // itemsize, *strides)
            column = memory.view(dtype).as_strided(shapes, steps, first)
            columns.append([tensor.data for tensor in column.unbind(0)])
        return list(zip(*columns, strict=True))


class Supply:
    """Memory of a device for the batches to come.

    Small batches get it for several at once, as long as they have the same size. So a tensor that
    is kept may keep the memory of :data:`MAX_PLACES` batches, up to :data:`SHARED` bytes.
    """

    def __init__(self, torch: Any, device: Device, size: int, fixed: int | None) -> None:
        """Allocates nothing.

        Args:
            torch: The module.
            device: Has the memory.
            size: The bytes of the next batch, as far as known.
            fixed: The number of places that are used in turn; ``None`` for new ones.
        """
        self._torch, self._device, self._size, self._fixed = torch, device, size, fixed
        #: The bytes of each place, if they are used in turn; otherwise 0.
        self.fixed_size = 0 if fixed is None else size
        self._places: Places | None = None
        self._next, self._count = 0, 1 if fixed is None else fixed

    def prepare(self, in_stream: int) -> None:
        """Allocates memory for the next batch, if its size is known.

        Args:
            in_stream: The most bytes of a batch that the caller's stream copies.
        """
        if self._places is None and self._size:
            is_own = self._size > in_stream
            self._allocate(self._size, None if is_own else self._device.current())

    def take(self, layout: Layout, stream: int | None) -> tuple[Places, int]:
        """Returns memory for a batch, and its place there.

        Args:
            layout: Of the batch.
            stream: The caller's stream, in whose order it is used; ``None``: that of copies.
        """
        places, size, is_fixed = self._places, aligned(layout.nbytes), self._fixed is not None
        if places is None or size > places.size or (2 * size < places.size and not is_fixed):
            self._count = self._fixed or 1
            places = self._allocate(size, stream)
        elif places.stream != stream and is_fixed:
            self._device.deliver(self._device.record(None, is_own=False), places.memory)
        elif places.stream != stream:
            places = self._allocate(places.size, stream)
        place = self._next
        self._next += 1
        if self._next == places.count:
            self._next = 0
            if not is_fixed:
                self._places, self._size = None, size
                self._count = max(1, min(2 * self._count, MAX_PLACES, SHARED // size))
        return places, place

    def _allocate(self, size: int, stream: int | None) -> Places:
        nbytes, is_own = size * self._count, stream is None
        if self._torch.is_inference_mode_enabled():  # later copies may be outside of it
            with self._torch.inference_mode(False):
                memory = self._device.empty(nbytes, is_own=is_own)
        else:
            memory = self._device.empty(nbytes, is_own=is_own)
        self._places, self._next = Places(self._torch, memory, self._count, stream), 0
        return self._places


class Ring:
    """Pinned memory that small batches use in turn, in the order of one stream of the caller.

    It has two halves. One is written again once an event after its last copy is over, so there is
    an event for several batches.
    """

    def __init__(self, device: Device, size: int, stream: int) -> None:
        """Allocates places of ``size`` bytes."""
        self._device = device
        self.size, self.stream = size, stream
        self._half = MAX_PLACES // 2
        self._memory = device.staging(2 * self._half * size)
        self._host: NDArray[np.uint8] = self._memory.numpy()
        self._next, self._is_used = 0, False
        #: After the last copy of each half; ``None`` if there was none.
        self._events: list[Event | None] = [None, None]
        self._sources: dict[int, Any] = {}
        self._views: dict[Layout, list[list[NDArray[Any]]]] = {}

    def take(self, layout: Layout) -> tuple[list[NDArray[Any]], Any]:
        """Waits for room; returns arrays to write into, and the source of their copy."""
        place, half = self._next, self._next // self._half
        if place % self._half == 0:
            if self._is_used:  # the other half is used up: all of its copies are before this point
                other = self._events[1 - half]
                self._events[1 - half] = self._device.record(other, is_own=False)
            event = self._events[half]
            if event is not None:
                event.synchronize()
        if layout not in self._views:
            places = range(2 * self._half)
            self._views[layout] = [layout.views(self._host, n * self.size) for n in places]
        if layout.nbytes not in self._sources:
            sources = self._memory.as_strided((2 * self._half, layout.nbytes), (self.size, 1))
            self._sources[layout.nbytes] = sources.unbind(0)
        found = self._views[layout][place], self._sources[layout.nbytes][place]
        self._next, self._is_used = (place + 1) % (2 * self._half), True
        return found


def aligned(nbytes: int) -> int:
    """The least multiple of :data:`ALIGN` that is not smaller."""
    return -(-nbytes // ALIGN) * ALIGN


def torch_dtype(torch: Any, dtype: np.dtype[Any]) -> Any:
    """PyTorch's dtype; ``None`` if it has none."""
    try:
        return torch.from_numpy(np.empty(0, dtype.newbyteorder("="))).dtype
    except TypeError:
        return None
