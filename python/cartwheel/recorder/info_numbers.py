"""The numbers in the infos of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    infos: dict[str, Any],
    size: int,
    leave_out: Callable[[Path, str], None] = lambda _path, _reason: None,
    path: Path = (),
) -> Iterator[tuple[Path, NDArray[Any], NDArray[np.bool_]]]:
    """Yields the numbers and flags in infos, but no other values.

    A key that is not text has the name ``str(key)``, as in its mask. One with ``"/"`` is a path.

    Args:
        infos: Of a batch.
        size: The rows of the batch.
        leave_out: Is called with a path and a reason for numbers that cannot be told.
        path: Comes before the names.

    Yields:
        A path, an array ``[size, ...]`` and the mask of the rows that have it.
    """
    masks = {f"_{key}" for key in infos}
    for key, values in infos.items():
        name = str(key)
        own = (*path, *name.split("/"))
        if key in masks:
            if f"_{key}" in infos:  # it has a mask itself
                other = "/".join(map(str, (*path, name[1:])))
                leave_out(own, f"it has the name of the mask of `{other}`")
            continue
        if not path and key in OF_THE_BATCH:
            continue
        mask = infos.get(f"_{key}")
        if mask is None or len(mask) != size:
            mask = np.ones(size, np.bool_)
        if isinstance(values, dict):
            for inner, array, there in numbers(values, size, leave_out, own):
                yield inner, array, there & mask
            continue
        array = np.asarray(values)
        if array.ndim and array.dtype == object and len(array) == size:
            try:
                array = _of_objects(array, np.flatnonzero(mask))
            except ValueError:
                leave_out(own, "its values have no common shape")
                continue
        if array.ndim and len(array) == size and array.dtype.kind in "biuf":
            yield own, array, mask


def _of_objects(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Objects as numbers, if all are: Gymnasium keeps ``np.bool_`` and lists as they are.

    Raises:
        ValueError: They are ragged.
    """
    found = np.array(values[places].tolist())
    if found.dtype.kind not in "biuf" or not len(found):
        return values
    array = np.zeros((len(values), *found.shape[1:]), found.dtype)
    array[places] = found
    return array
