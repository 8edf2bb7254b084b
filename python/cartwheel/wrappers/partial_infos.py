"""Infos of a batch, taken apart and put together by rows, in Gymnasium's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Infos of a batch of rows, and where these rows are in another batch.
Part = tuple["NDArray[np.intp]", dict[str, Any]]


def take(infos: dict[str, Any], places: NDArray[np.intp]) -> dict[str, Any]:
    """Returns the infos of some places of a batch, without keys that none of them has.

    Args:
        infos: Arrays with their masks, ``_name``; dictionaries of such arrays. An array without a
            mask has a value for every place.
        places: Places in the batch.
    """
    taken: dict[str, Any] = {}
    for key, values in infos.items():
        if _is_mask(infos, key):
            continue
        mask = infos.get(f"_{key}")
        chosen = None if mask is None else mask[places]
        if chosen is not None and not np.count_nonzero(chosen):
            continue
        if isinstance(values, dict):
            taken[key] = take(values, places)
        elif isinstance(values, np.ndarray):
            taken[key] = values[places]
        else:
            taken[key] = values
        if chosen is not None:
            taken[f"_{key}"] = chosen
    return taken


def merged(size: int, parts: list[Part]) -> dict[str, Any]:
    """Puts infos together to those of a batch, as Gymnasium adds the info of one row to another.

    Args:
        size: The places of the batch.
        parts: Infos of rows, and their places in the batch.

    Returns:
        Arrays that have the dtype of the first row that has a value; 0 or ``None`` elsewhere.
    """
    batch: dict[str, Any] = {}
    keys = dict.fromkeys(key for _, infos in parts for key in infos if not _is_mask(infos, key))
    for key in keys:
        having = [(places, infos) for places, infos in parts if key in infos]
        having.sort(key=lambda part: _first(part, key))
        if isinstance(having[0][1][key], dict):
            inner = [(places, infos[key]) for places, infos in having]
            batch[key] = merged(size, [part for part in inner if isinstance(part[1], dict)])
        else:
            batch[key] = _joined(size, key, having)
        if any(f"_{key}" in infos for _, infos in having):
            mask = np.zeros(size, np.bool_)
            for places, infos in having:
                mask[places] |= infos.get(f"_{key}", True)
            batch[f"_{key}"] = mask
    return batch


def _joined(size: int, key: str, parts: list[Part]) -> Any:
    first = parts[0][1][key]
    if not isinstance(first, np.ndarray):
        return first
    whole: Any = np.zeros((size, *first.shape[1:]), first.dtype)
    if first.dtype == object:
        whole[:] = None
    for places, infos in parts:
        mask = infos.get(f"_{key}")
        if mask is None:
            whole[places] = infos[key]
        else:
            whole[places[mask]] = infos[key][mask]
    return whole


def _first(part: Part, key: str) -> int:
    """The first place with a value."""
    places, infos = part
    mask = infos.get(f"_{key}")
    return int((places if mask is None else places[mask]).min(initial=np.iinfo(np.intp).max))


def _is_mask(infos: dict[str, Any], key: str) -> bool:
    return key.startswith("_") and key[1:] in infos
