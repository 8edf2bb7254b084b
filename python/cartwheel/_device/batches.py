"""Batches as one piece: of a slab, or packed into pinned memory; and tensors of its copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Dict, Tuple

from cartwheel._cartwheel import SlabLease
from cartwheel._device.places import ALIGN, Layout, Ring, Supply, aligned, torch_dtype
from cartwheel._internal import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._device.transfers import Transfers

#: The most bytes of a batch that is packed into pinned memory, though it is in a slab: that takes
#: less time than to look whether a copy from the slab is over.
PACKED = 256 << 10
#: The most bytes that are copied in the caller's stream: less time than to let it wait for another.
IN_STREAM = 2 << 20
#: The number of sizes of batches that are remembered.
MAX_LAYOUTS = 64


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


class DeviceBatches:
    """Sends the batches of one wrapper to a device.

    The results of a batch travel in one copy, and everything else, if there is anything, in a
    second one. A tensor is never overwritten, unless the memory is static.
    """

    def __init__(
        self,
        transfers: Transfers,
        space: Space[Any],
        rows: int,
        *,
        static: bool,
        depth: int,
        has_pool_rewards: bool = False,
    ) -> None:
        """Allocates nothing on the device.

        Args:
            transfers: Makes the copies.
            space: The observation space of one environment.
            rows: The maximum number of rows of a batch.
            static: Whether results have one of ``depth`` fixed places.
            depth: The maximum number of copies in flight.
            has_pool_rewards: Whether rewards of a batch in a slab are those in the slab.

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
        self._is_static, self._has_pool_rewards = static, has_pool_rewards
        fixed = depth if static else None
        self._results = Supply(torch, transfers.device, size or 0, fixed)
        self._others = Supply(torch, transfers.device, 0, None)
        self._layouts: dict[Any, Layout] = {}
        self._rings: dict[int, Ring] = {}

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether there are tensors of this dtype."""
        dtype = array.dtype
        if dtype not in self._accepted:
            self._accepted[dtype] = torch_dtype(self._torch, dtype) is not None
        return self._accepted[dtype]

    def prepare(self) -> None:
        """Allocates memory for the next batch, so that a shortage is an error before the step.

        Raises:
            RuntimeError: The device has too little memory.
            ForkedProcessError: In a forked child.
        """
        self._transfers.land()
        self._results.prepare(IN_STREAM)
        self._others.prepare(IN_STREAM)

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
        arrays, further = results.arrays(), list(others)
        tensors = self._sent(self._results, arrays, results)
        found = {id(array): tensor for array, tensor in zip(arrays, tensors, strict=True)}
        if further:
            tensors = self._sent(self._others, further, None)
            found.update((id(array), each) for array, each in zip(further, tensors, strict=True))
        return found

    def tensors_of(self, tree: Any) -> Any:
        """Sends nested arrays; those without a PyTorch dtype stay."""
        arrays = collected(tree, self.accepts)
        if not arrays:
            return tree
        self._transfers.land()
        sent = self.send(Results(arrays))
        return nested.apply(lambda value: sent.get(id(value), value), tree)

    def empty_like(self, array: NDArray[Any]) -> Any:
        """Allocates a tensor that :meth:`fill` may write, in the order of the caller's stream.

        Raises:
            RuntimeError: The device has too little memory.
        """
        transfers = self._transfers
        transfers.check_process()
        with self._torch.inference_mode(False):
            memory = transfers.device.empty(max(array.nbytes, 1), is_own=False)
            transfers.device.share(memory)
            dtype = torch_dtype(self._torch, array.dtype)
            return memory[: array.nbytes].view(dtype).view(array.shape)

    def on_device(self, array: NDArray[Any]) -> Any:
        """A copy of an array of numbers, for which the host waits."""
        return self._torch.from_numpy(array).to(self._transfers.device.name)

    def fill(self, targets: list[Any], arrays: list[NDArray[Any]]) -> None:
        """Copies arrays into memory of :meth:`empty_like`, each to its place.

        Args:
            targets: The place of each array: a tensor of as many bytes.
            arrays: Are packed into pinned memory first.

        Raises:
            RuntimeError: The device failed.
            ForkedProcessError: In a forked child.
        """
        transfers = self._transfers
        transfers.land()
        layout = self._packed(arrays, 1)
        is_own = layout.nbytes > IN_STREAM
        if layout.nbytes <= PACKED:
            views, source = self._ring(layout.nbytes, transfers.device.current()).take(layout)
            for view, array in zip(views, arrays, strict=True):
                view[...] = array
        else:
            source = self._staged(layout, arrays)
        copies = [
            (target, source[start : start + target.numel()])
            for target, start in zip(targets, layout.starts, strict=True)
        ]
        if is_own:
            transfers.send(copies, targets[0], self._depth, is_own=True)
        else:
            for target, part in copies:
                transfers.put(target, part)

    def _staged(self, layout: Layout, arrays: list[NDArray[Any]]) -> Any:
        """A copy of arrays in pinned memory, made by all threads of PyTorch."""
        torch = self._torch
        source = self._transfers.device.staging(layout.nbytes)
        for view, array in zip(layout.views(source.numpy()), arrays, strict=True):
            if array.flags.writeable and array.dtype == view.dtype and array.flags.c_contiguous:
                torch.from_numpy(view).copy_(torch.from_numpy(array))
            else:
                view[...] = array
        return source

    def _sent(self, supply: Supply, arrays: list[NDArray[Any]], results: Results | None) -> Any:
        """Sends arrays in one copy; returns their tensors."""
        transfers = self._transfers
        layout = self._packed(arrays, 1 if results is None else self._rows_of(arrays))
        is_own = (supply.fixed_size or layout.nbytes) > IN_STREAM
        stream = None if is_own else transfers.device.current()
        piece = None
        if layout.nbytes <= PACKED and stream is not None:
            views, source = self._ring(layout.nbytes, stream).take(layout)
            for view, array in zip(views, arrays, strict=True):
                view[...] = array
        else:
            piece = None if results is None else self._in_slab(results, arrays)
            if piece is None:
                source = self._staged(layout, arrays)
            else:
                layout, source = piece
        places, place = supply.take(layout, stream)
        target = places.target(place, layout.nbytes)
        if is_own or piece is not None:
            if is_own and supply.fixed_size:
                transfers.device.follow()
            transfers.send([(target, source)], places.memory, self._depth, is_own=is_own)
        else:
            transfers.put(target, source)
        return places.tensors(place, layout)

    def _packed(self, arrays: list[NDArray[Any]], rows: int) -> Layout:
        """The places of arrays in one piece, each with room for ``rows`` rows."""
        key = (rows, *[(array.dtype, array.shape) for array in arrays])
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._remember(key, Layout.of_packed(self._torch, arrays, rows))
        return layout

    def _remember(self, key: Any, layout: Layout) -> Layout:
        if len(self._layouts) >= MAX_LAYOUTS:  # batches of `recv` may have any size
            self._layouts.clear()
            self._rings.clear()
        self._layouts[key] = layout
        return layout

    def _ring(self, nbytes: int, stream: Any) -> Ring:
        """Pinned memory in places of the next power of two above ``nbytes``."""
        size = max(1 << (nbytes - 1).bit_length(), ALIGN)
        ring = self._rings.get(size)
        if ring is None or ring.stream != stream:
            ring = self._rings[size] = Ring(self._transfers.device, size, stream)
        return ring

    def _rows_of(self, arrays: list[NDArray[Any]]) -> int:
        """The rows for which a piece has places: with static memory, those of a full batch."""
        rows = len(arrays[0]) if arrays and arrays[0].ndim else 1
        return max(rows, self._rows) if self._is_static else rows

    def _in_slab(self, results: Results, arrays: list[NDArray[Any]]) -> tuple[Layout, Any] | None:
        """The piece of a slab that has these results; ``None`` if they are not all in one."""
        leaves = results.leaves
        if not (self._transfers.has_slabs and leaves and isinstance(leaves[0].base, SlabLease)):
            return None
        lease = leaves[0].base
        found = lease.results()
        if found is None:
            return None
        memory, (ended, *offsets) = found
        own = (*leaves, *results.finals)
        flags = _flags_in_slab(results, ended, offsets, len(leaves[0]))
        if flags is None or not all(_is_of(lease, array) for array in own):
            return None
        from_numpy = self._torch.from_numpy  # the quickest way to an address
        source = from_numpy(memory)
        start = source.data_ptr()
        if not self._transfers.registrations.covers(start, memory.nbytes):
            return None
        places = [from_numpy(array).data_ptr() - start for array in own]
        if results.ended is not None:
            places.append(ended)
        if results.outcomes:
            places += offsets
            if not self._has_pool_rewards:  # wrappers may have others
                rewards = results.outcomes[0]
                np.ndarray(rewards.shape, np.float64, memory, offsets[0])[...] = rewards
        for array, place in flags:  # in the slab, any byte but 0 is true
            np.ndarray(array.shape, np.bool_, memory, place)[...] = array
        key = (memory.nbytes, *places, *[(array.dtype, array.shape) for array in arrays])
        layout = self._layouts.get(key)
        if layout is None:
            pairs = zip(places, arrays, strict=True)
            form = tuple((at, array.dtype, array.shape) for at, array in pairs)
            layout = self._remember(key, Layout(self._torch, form, memory.nbytes))
        return layout, source


def _is_of(lease: object, array: NDArray[Any]) -> bool:
    """Whether an array has the memory of a slab as the pool made it."""
    flags = array.flags
    return array.base is lease and flags.c_contiguous and flags.writeable


def _flags_in_slab(
    results: Results, ended: int | None, offsets: list[int], rows: int
) -> list[tuple[NDArray[np.bool_], int]] | None:
    """Returns the flags of a batch with their places in its slab.

    Args:
        results: Of the batch.
        ended: The place of the flags that final observations have; ``None`` without any.
        offsets: The places of rewards, terminations and truncations.
        rows: The rows of the batch.

    Returns:
        ``None`` if rewards or flags do not fit there.
    """
    flags: list[tuple[Any, Any]] = []
    if results.ended is not None:
        flags.append((results.ended, ended))
    if results.outcomes:
        rewards, room = results.outcomes[0], offsets[1] - offsets[0]
        if rewards.dtype != np.float64 or len(rewards) != rows or rewards.nbytes > room:
            return None
        flags += zip(results.outcomes[1:], offsets[1:], strict=True)
    for array, place in flags:
        if place is None or array.dtype != np.bool_ or array.shape != (rows,):
            return None
    return flags


def collected(tree: Any, accepts: Callable[[NDArray[Any]], bool]) -> list[NDArray[Any]]:
    """The arrays of nested observations for which ``accepts`` is true."""
    found: list[NDArray[Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, np.ndarray) and accepts(value):
            found.append(value)

    nested.apply(collect, tree)
    return found


def _max_bytes(space: Space[Any], rows: int) -> int | None:
    """The bytes of the results of ``rows`` rows; ``None`` if they have no fixed size.

    Final observations count: the memory is there before it is known whether a batch has them.
    """
    total = 0
    for leaf in nested.leaves(space):
        if isinstance(leaf, Dict | Tuple) or not isinstance(leaf, nested.ARRAY_SPACES):
            return None
        assert leaf.dtype is not None
        size = rows * math.prod(leaf.shape or ()) * leaf.dtype.itemsize
        total += 2 * aligned(size)
    return total + aligned(rows * 8) + 3 * aligned(rows)
