"""Arrays with a time axis on a device, which are filled batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel._device.batches import DeviceBatches


class Mirror:
    """The observations of a rollout on a device, ``[T + 1, N, …]``.

    A row is copied once, when the host does not change it any more. Each tensor has a version
    counter of its own, so that autograd takes no row for a change of an earlier one.

    Attributes:
        tensors: Nested like the observations. Arrays without a PyTorch dtype stay arrays.
    """

    def __init__(self, torch: Any, batches: DeviceBatches, host: Any) -> None:
        """Allocates memory for arrays like those of ``host``, from which rows are copied.

        Raises:
            RuntimeError: The device has too little memory.
        """
        self._torch, self._batches, self._host = torch, batches, host
        self._arrays: list[NDArray[Any]] = []
        #: Of each array, its rows as bytes.
        self._rows: list[Any] = []
        self._leaves: list[Any] = []
        self.tensors = nested.apply(self._allocated, host)
        self._shape = next(iter(self._arrays)).shape[:2] if self._arrays else (0, 0)
        #: Rows and columns that are there.
        self._is_there = np.zeros(self._shape, np.bool_)

    def _allocated(self, array: NDArray[Any]) -> Any:
        if not self._batches.accepts(array):
            return array
        tensor = self._batches.empty_like(array)
        self._arrays.append(array)
        self._leaves.append(tensor)
        nbytes = array[:1].nbytes
        bytes_of = tensor.data.reshape(-1).view(self._torch.uint8)
        self._rows.append(bytes_of.view(len(array), nbytes).unbind(0) if nbytes else None)
        return tensor

    def put(self, step: int) -> Any:
        """Copies all columns of a row, if they are not there yet; returns the row."""
        if self._shape[1] and not self._is_there[step].all():
            places = [place for place, rows in enumerate(self._rows) if rows is not None]
            arrays = [self._arrays[place][step] for place in places]
            self._batches.fill([self._rows[place][step] for place in places], arrays)
            self._is_there[step] = True
        return nested.at(self.tensors, step)

    def take_in(self, steps: NDArray[np.int64], columns: NDArray[np.int64], batch: Any) -> None:
        """Writes a batch that is on the device, one observation for each of these places."""
        tensors: list[Any] = []
        nested.apply(tensors.append, batch)
        tensors = [part for part in tensors if isinstance(part, self._torch.Tensor)]
        index = self._index(steps, columns)
        for leaf, tensor in zip(self._leaves, tensors, strict=True):
            leaf[index] = tensor.detach()
        self._is_there[steps, columns] = True

    def complete(self) -> Any:
        """Copies what is not there yet; returns the tensors."""
        for step in np.flatnonzero(~self._is_there.any(axis=1)).tolist():
            self.put(step)
        steps, columns = np.nonzero(~self._is_there)
        if len(steps):
            rest = nested.at(self._host, (steps, columns))
            self.take_in(steps, columns, self._batches.tensors_of(rest))
        return self.tensors

    def _index(self, steps: NDArray[np.int64], columns: NDArray[np.int64]) -> Any:
        """The places as an index of tensors: slices if they are evenly spaced columns of a row."""
        step, first, count = int(steps[0]), int(columns[0]), len(columns)
        stride = int(columns[1]) - first if count > 1 else 1
        if stride > 0 and (steps == step).all():
            last = first + stride * count
            if np.array_equal(columns, np.arange(first, last, stride)):
                return step, slice(first, last, stride)
        return tuple(self._batches.on_device(part) for part in (steps, columns))
