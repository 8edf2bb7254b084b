"""Rows of batches and of their infos: some of a batch, and those of several as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Dict, Space, Tuple

from cartwheel._internal import nested
from cartwheel.vector.infos import masks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def chosen_actions(space: Space[Any], batch: Any, places: NDArray[np.intp], count: int) -> Any:
    """Some of the ``count`` rows of a batch, of which a leaf may be any array or list.

    Raises:
        ValueError: A leaf has another number of rows.
    """
    if isinstance(space, Dict) and isinstance(batch, dict):
        pairs = space.spaces.items()
        return {key: chosen_actions(part, batch[key], places, count) for key, part in pairs}
    if isinstance(space, Tuple) and isinstance(batch, tuple):
        both = zip(space.spaces, batch, strict=True)
        return tuple(chosen_actions(part, values, places, count) for part, values in both)
    values = batch if isinstance(batch, tuple) else np.asarray(batch)
    found = len(values) if isinstance(values, tuple) or values.ndim else 0
    if found != count:
        raise ValueError(f"`actions` must have one action for each of {count} rows, got {found}.")
    return nested.take(space, values, places)


def joined(space: Space[Any], first: Any, second: Any, order: NDArray[np.intp]) -> Any:
    """The rows of two batches, one after the other, in an order."""

    def ordered(_: Any, one: Any, other: Any) -> Any:
        if isinstance(one, np.ndarray):
            return np.concatenate([one, other])[order]
        both = (*one, *other)
        return tuple(both[place] for place in order)

    return nested.each(ordered, space, first, second)


#: Infos of a batch of rows, and where these rows are in another batch.
Part = tuple["NDArray[np.intp]", dict[str, Any]]


def take_infos(
    infos: dict[str, Any], places: NDArray[np.intp], metrics: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Returns the infos of some places of a batch, without keys that none of them has.

    Args:
        infos: Arrays with their masks, ``_name``; dictionaries of such arrays. An array without a
            mask has a value for every place.
        places: Places in the batch.
        metrics: Keys that have a value for every place, whatever their mask says.
    """
    taken: dict[str, Any] = {}
    masks = masks_of(infos)
    for key, values in infos.items():
        if key in masks:
            continue
        mask = infos.get(f"_{key}")
        chosen = None if mask is None else mask[places]
        if chosen is not None and key not in metrics and not np.count_nonzero(chosen):
            continue
        if isinstance(values, dict):
            taken[key] = take_infos(values, places)
        elif isinstance(values, np.ndarray):
            taken[key] = values[places]
        else:
            taken[key] = values
        if chosen is not None:
            taken[f"_{key}"] = chosen
    return taken


def merged_infos(size: int, parts: list[Part]) -> dict[str, Any]:
    """Puts infos together to those of a batch, as Gymnasium adds the info of one row to another.

    Args:
        size: The places of the batch.
        parts: Infos of rows, and their places in the batch.

    Returns:
        Arrays that have the dtype of the first row that has a value; 0 or ``None`` elsewhere.
    """
    batch: dict[str, Any] = {}
    masked = [(infos, masks_of(infos)) for _, infos in parts]
    keys = dict.fromkeys(key for infos, masks in masked for key in infos if key not in masks)
    for key in keys:
        having = [(places, infos) for places, infos in parts if key in infos]
        having.sort(key=lambda part: _first(part, key))
        if isinstance(having[0][1][key], dict):
            inner = [(places, infos[key]) for places, infos in having]
            batch[key] = merged_infos(size, [part for part in inner if isinstance(part[1], dict)])
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
