"""Random numbers of several rows at once, each row's from its own stream."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.suggestions import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from cartwheel._cartwheel import RowStreams

#: The shape of the numbers of one row; ``None`` for that of the arguments.
Size = int | tuple[int, ...] | None


class RowGenerators:
    """Draws numbers for the rows that begin an episode: the argument ``rng`` of ``reset``.

    Entry ``j`` of a result is what the generator of row ``j``, ``np_random`` in a Gymnasium
    environment, draws with the same arguments. So the numbers of a row depend on its seed and its
    earlier draws only, not on the other rows or the number of threads.
    """

    def __init__(self, streams: RowStreams, num_rows: int) -> None:
        """Draws from these streams, until they are taken back."""
        self._streams = streams
        self._num_rows = num_rows

    def __len__(self) -> int:
        return self._num_rows

    def __repr__(self) -> str:
        return f"RowGenerators of {self._num_rows} rows"

    def __getattr__(self, name: str) -> Any:
        names = [known for known in dir(type(self)) if not known.startswith("_")]
        raise AttributeError(f"`rng` has no {name!r}; it has {', '.join(names)}")

    def random(self, size: Size = None) -> NDArray[np.float64]:
        """Returns uniform numbers in ``[0, 1)``, ``(num_rows, *size)``."""
        numbers, rows = self._empty(size, np.float64)
        self._streams.random(rows)
        return numbers

    def uniform(
        self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: Size = None
    ) -> NDArray[np.float64]:
        """Returns uniform numbers in ``[low, high)``, ``(num_rows, *size)``.

        Args:
            low: The lower limit: a number, or an array that broadcasts to ``size``.
            high: The upper limit, likewise.
            size: The shape of the numbers of one row; by default that of ``low`` and ``high``.

        Raises:
            ValueError: The arguments do not broadcast, or the range is negative or not finite.
        """
        low, high, size = _broadcast("low", low, "high", high, size)
        with np.errstate(over="ignore", invalid="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            raise ValueError(f"`low` and `high` must be finite, got {shown(low)}, {shown(high)}.")
        if np.signbit(width).any():
            raise ValueError(f"`low` must not be above `high`, got {shown(low)}, {shown(high)}.")
        return low + width * self.random(size)

    def standard_normal(self, size: Size = None) -> NDArray[np.float64]:
        """Returns normally distributed numbers, ``(num_rows, *size)``."""
        numbers, rows = self._empty(size, np.float64)
        self._streams.standard_normal(rows)
        return numbers

    def normal(
        self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: Size = None
    ) -> NDArray[np.float64]:
        """Returns numbers with mean ``loc`` and deviation ``scale``, ``(num_rows, *size)``.

        Args:
            loc: The mean: a number, or an array that broadcasts to ``size``.
            scale: The deviation, likewise.
            size: The shape of the numbers of one row; by default that of ``loc`` and ``scale``.

        Raises:
            ValueError: The arguments do not broadcast, or a deviation is negative.
        """
        loc, scale, size = _broadcast("loc", loc, "scale", scale, size)
        if (np.signbit(scale) | np.isnan(scale)).any():
            raise ValueError(f"`scale` must not be negative, got {shown(scale)}.")
        return loc + scale * self.standard_normal(size)

    def integers(
        self, low: int, high: int | None = None, size: Size = None, *, endpoint: bool = False
    ) -> NDArray[np.int64]:
        """Returns integers of ``int64`` from ``low`` to below ``high``, ``(num_rows, *size)``.

        Args:
            low: The lowest integer; if ``high`` is ``None``, integers are from 0 to below ``low``.
            high: The limit.
            size: The shape of the numbers of one row.
            endpoint: Whether ``high`` itself is drawn, too.

        Raises:
            TypeError: `low` or `high` is an array.
            ValueError: `low` is not below `high`.
        """
        first, last = (0, low) if high is None else (low, high)
        if np.ndim(first) or np.ndim(last):
            raise TypeError(f"limits of `integers` are numbers, got {shown(first)}, {shown(last)}.")
        first, last = int(first), int(last) - (not endpoint)
        if not -(2**63) <= first <= last < 2**63:
            raise ValueError(
                f"there is no int64 from {first} to {last}: `low` must be below `high`"
            )
        numbers, rows = self._empty(size, np.int64)
        self._streams.integers(first, last, rows)
        return numbers

    def _empty(self, size: Size, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns an array for numbers, and a view of it with one axis for those of a row."""
        shape = _as_shape(size)
        numbers = np.empty((self._num_rows, *shape), dtype)
        return numbers, numbers.reshape(self._num_rows, prod(shape))


def _as_shape(size: Size | Sequence[int]) -> tuple[int, ...]:
    if size is None:
        return ()
    shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
    if not all(isinstance(length, int | np.integer) and length >= 0 for length in shape):
        raise ValueError(f"`size` must be the shape of the numbers of one row, got {shown(size)}.")
    return tuple(map(int, shape))


def _broadcast(
    name: str, value: Any, other_name: str, other: Any, size: Size
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, ...]]:
    """Returns both arguments as arrays, and the shape of the numbers of one row."""
    value, other = np.asarray(value, np.float64), np.asarray(other, np.float64)
    wanted = None if size is None else _as_shape(size)
    try:
        shape = np.broadcast_shapes(value.shape, other.shape)
        if wanted in (None, np.broadcast_shapes(shape, wanted or ())):
            return value, other, shape if wanted is None else wanted
    except ValueError:
        pass
    raise ValueError(
        f"`{name}` of shape {value.shape} and `{other_name}` of shape {other.shape} do not "
        f"broadcast to the `size` of one row, {size}: they are the same for all rows."
    )
