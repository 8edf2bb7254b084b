"""The numbers in the infos of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cartwheel.recorder.episode import Path

#: Keys about the batch, not about an episode.
OF_THE_BATCH = frozenset(
    [
        "env_error",
        "env_index",
        "final_frame",
        "final_info",
        "final_obs",
        "final_observation",
        "infos_lost",
        "worker_restarted",
    ]
)


def numbers(
    infos: dict[str, Any], size: int, path: Path = ()
) -> Iterator[tuple[Path, NDArray[Any], NDArray[np.bool_]]]:
    """Yields the numbers and flags in infos; other values are left out.

    Args:
        infos: Of a batch.
        size: The rows of the batch.
        path: Comes before the names.

    Yields:
        A path, an array ``[size, ...]`` and the mask of the rows that have it.
    """
    for key, values in infos.items():
        if key.startswith("_") or (not path and key in OF_THE_BATCH) or "/" in key:
            continue
        mask = infos.get(f"_{key}")
        if mask is None or len(mask) != size:
            mask = np.ones(size, np.bool_)
        if isinstance(values, dict):
            for inner, array, there in numbers(values, size, (*path, key)):
                yield inner, array, there & mask
            continue
        array = np.asarray(values)
        if array.ndim and array.dtype == object and len(array) == size:
            array = _of_objects(array, np.flatnonzero(mask))
        if array.ndim and len(array) == size and array.dtype.kind in "biuf":
            yield (*path, key), array, mask


def _of_objects(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Objects as numbers, if all are: Gymnasium keeps ``np.bool_`` and lists as they are."""
    try:
        found = np.array(values[places].tolist())
    except ValueError:  # ragged
        return values
    if found.dtype.kind not in "biuf" or not len(found):
        return values
    array = np.zeros((len(values), *found.shape[1:]), found.dtype)
    array[places] = found
    return array
