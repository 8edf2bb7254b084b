"""The linear map from the bounds of a ``Box`` to others, for observations and actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The widest floating point of the platform: differences of bounds do not overflow in it.
_WIDE = np.longdouble


class Affine:
    """``x ↦ gradient · x + intercept``, which maps a ``Box`` onto other bounds.

    All numbers have the dtype of the ``Box``, and equal those of Gymnasium's
    ``gymnasium.wrappers.utils.rescale_box`` to the bit. Where one bound is infinite, the gradient
    is 1, and the finite bound is moved.

    Attributes:
        box: The new bounds.
    """

    def __init__(
        self, box: Box, names: tuple[str, str], bounds: tuple[Any, Any], rows: int
    ) -> None:
        """Computes gradient and intercept.

        Args:
            box: The old bounds.
            names: The names of the new bounds in errors.
            bounds: The new bounds: numbers, or arrays of the shape of ``box``.
            rows: The most rows of a batch.

        Raises:
            TypeError: A bound is neither a number nor an array.
            ValueError: A bound has the wrong shape, is infinite where the old one is not or the
                other way round, or the lower one is above the upper one; two old bounds are equal;
                or integers would be cut off.
        """
        low, high = (_bound(name, bound, box) for name, bound in zip(names, bounds, strict=True))
        for name, new, old in ((names[0], low, box.low), (names[1], high, box.high)):
            if not np.all((new == old)[np.isinf(new) | np.isinf(old)]):
                raise ValueError(
                    f"`{name}` must be infinite where the old bound is, and only there, got {new} "
                    f"for {old}."
                )
        if not np.all(low <= high):
            raise ValueError(f"`{names[0]}` must not be above `{names[1]}`, got {low} and {high}.")
        below, above = np.isfinite(low), np.isfinite(high)
        both = below & above
        gradient, intercept = np.ones(box.shape, box.dtype), np.zeros(box.shape, box.dtype)
        widths = box.high[both].astype(_WIDE) - box.low[both].astype(_WIDE)
        if not np.all(widths):
            raise ValueError(
                f"numbers of {box} cannot be rescaled to `{names[0]}` and `{names[1]}`: some of "
                "its bounds are equal, so the factor would be infinite."
            )
        factors = (high[both] - low[both]) / widths
        numbers = np.concatenate([factors, low[below], high[above]])
        if box.dtype.kind in "iu" and not _are_integers(numbers, box.dtype):
            raise ValueError(
                f"`{names[0]}` and `{names[1]}` must make {box.dtype} numbers of those of {box}, "
                f"got {bounds[0]} and {bounds[1]}, with which they would be cut off: make them "
                "floating-point numbers first, observations by DtypeObservation."
            )
        gradient[both] = factors
        intercept[above] = high[above] - box.high[above]
        intercept[below] = gradient[below] * -box.low[below] + low[below]
        dtype: Any = box.dtype
        self.box = Box(low.astype(dtype), high.astype(dtype), shape=box.shape, dtype=dtype)
        # One copy a row: NumPy is several times slower where it repeats short rows.
        self._gradient = np.repeat(gradient[None], rows, axis=0)
        self._intercept = np.repeat(intercept[None], rows, axis=0)

    def forward(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Maps a batch from the old bounds to the new ones."""
        scaled: NDArray[Any] = self._gradient[: len(batch)] * batch
        if scaled.dtype != self._intercept.dtype:  # numbers of another dtype than the space's
            return scaled + self._intercept[: len(batch)]
        scaled += self._intercept[: len(batch)]
        return scaled

    def backward(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Maps a batch from the new bounds to the old ones."""
        return (batch - self._intercept[: len(batch)]) / self._gradient[: len(batch)]


def _bound(name: str, bound: Any, box: Box) -> NDArray[Any]:
    if not isinstance(bound, np.ndarray):
        if not isinstance(bound, int | float | np.integer | np.floating):
            raise TypeError(f"`{name}` must be a number or an array, got {type(bound)}.")
        return np.full(box.shape, bound)
    if bound.shape != box.shape:
        raise ValueError(f"`{name}` must have the shape {box.shape}, got {bound.shape}.")
    return bound


def _are_integers(numbers: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    limits: Any = np.iinfo(dtype)
    fits = (numbers == np.rint(numbers)) & (numbers >= limits.min) & (numbers <= limits.max)
    return bool(fits.all())
