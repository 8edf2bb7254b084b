"""Running moments, as normalizers show them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class RunningMoments:
    """Mean and variance of all numbers seen so far: copies.

    They begin as Gymnasium's, with mean 0, variance 1 and a count of 1e-4, and are ``float64``.

    Attributes:
        mean: The mean of each number of an observation, or of the returns.
        var: The variance of each, of the whole population.
        count: The number of observations or returns, and 1e-4.
    """

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: float
