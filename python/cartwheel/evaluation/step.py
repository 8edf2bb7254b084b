"""What a step of some rows returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Step(NamedTuple):
    """The results of rows that were stepped, in their order."""

    rows: NDArray[np.intp]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, Any]
    #: Where each row is in the arrays of ``infos``, ascending.
    places: NDArray[np.intp]
