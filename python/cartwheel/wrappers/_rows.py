"""Rows of batches: checks against a space, and taking and merging batches and infos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space, Tuple
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.nested import ARRAY_SPACES
from cartwheel.vector.infos import masks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Fit:
    """Checks results of a function against a space: nesting, dtypes, shapes and number of rows.

    Args:
        what: The name of the result in errors.
        single: The space of one row.
    """

    def __init__(self, what: str, single: Space[Any]) -> None:
        """Computes what a check of one array needs, because every step makes one."""
        self._what, self._single = what, single
        is_leaf = isinstance(single, ARRAY_SPACES)
        self._dtype = single.dtype if is_leaf else None
        self._shape = tuple(single.shape or ()) if is_leaf else ()

    def check(self, batch: Any, rows: int) -> None:
        """Checks a batch.

        Args:
            batch: The result of the function.
            rows: The number of rows that it was given.

        Raises:
            ValueError: The batch does not fit the space.
        """
        if (
            isinstance(batch, np.ndarray)
            and batch.dtype == self._dtype
            and batch.shape == (rows, *self._shape)
        ):
            return
        found = mismatch(self._single, batch, rows, "")
        if found is not None:
            raise ValueError(
                f"`func` returned {self._what} that do not fit the space: for {rows} rows of "
                f"{self._single}, {found}"
            )


def mismatch(space: Space[Any], batch: Any, rows: int, where: str) -> str | None:
    """Describes where a batch does not fit the space of one row; bounds are not checked.

    Args:
        space: The space of one row.
        batch: Nested like the space.
        rows: The number of rows that it should have.
        where: The place within the whole, such as ``" at 'pixels'"``.

    Returns:
        A description, or ``None`` if the batch fits.
    """
    if isinstance(space, Dict):
        if not isinstance(batch, dict) or batch.keys() != space.spaces.keys():
            return f"a dict with the keys {list(space.spaces)} is needed{where}, got {_told(batch)}"
        places = [(part, batch[key], f"{where} at {key!r}") for key, part in space.spaces.items()]
    elif isinstance(space, Tuple):
        if not isinstance(batch, tuple) or len(batch) != len(space.spaces):
            return f"a tuple of {len(space.spaces)} is needed{where}, got {_told(batch)}"
        pairs = enumerate(zip(space.spaces, batch, strict=True))
        places = [(part, value, f"{where} at {number}") for number, (part, value) in pairs]
    elif isinstance(space, ARRAY_SPACES):
        wanted = (rows, *tuple(space.shape or ()))
        fits = (
            isinstance(batch, np.ndarray) and batch.dtype == space.dtype and batch.shape == wanted
        )
        if fits:
            return None
        return f"an array {wanted} of {space.dtype} is needed{where}, got {_told(batch)}"
    else:
        fits = isinstance(batch, tuple | list | np.ndarray) and len(batch) == rows
        return None if fits else f"{rows} values are needed{where}, got {_told(batch)}"
    found = (mismatch(part, value, rows, place) for part, value, place in places)
    return next((text for text in found if text is not None), None)


def _told(batch: Any) -> str:
    if isinstance(batch, np.ndarray):
        return f"an array {batch.shape} of {batch.dtype}"
    if isinstance(batch, dict):
        return f"a dict with the keys {list(batch)}"
    return f"a {type(batch).__name__}" + (f" of {len(batch)}" if hasattr(batch, "__len__") else "")


def single_space(
    name: str,
    batched: Space[Any] | None,
    single: Space[Any] | None,
    unchanged: Space[Any],
    rows: int,
) -> Space[Any]:
    """Returns the space of one row of the results of a function.

    Args:
        name: The name of the argument ``batched``, for errors.
        batched: The space of a batch, if it was given.
        single: The space of one row, if it was given; otherwise it is found from ``batched``.
        unchanged: The space of one row if neither was given.
        rows: The rows of the batch.

    Raises:
        ValueError: The two contradict each other, or the space of one row cannot be found.
    """
    if batched is None:
        return unchanged if single is None else single
    found = _row(batched) if single is None else single
    if found is not None and batch_space(found, rows) == batched:
        return found
    if single is None:
        raise ValueError(
            f"the space of one environment cannot be derived from the space {batched} of a batch "
            f"of {rows}: give `single_{name}`."
        )
    raise ValueError(
        f"`{name}` {batched} is not the batch of {rows} times `single_{name}` {single}."
    )


def _row(batched: Space[Any]) -> Space[Any] | None:
    if isinstance(batched, Dict):
        named = {key: _row(part) for key, part in batched.spaces.items()}
        found = {key: part for key, part in named.items() if part is not None}
        return Dict(found) if len(found) == len(named) else None
    if isinstance(batched, Tuple):
        rows = [row for row in map(_row, batched.spaces) if row is not None]
        return Tuple(rows) if len(rows) == len(batched.spaces) else None
    if isinstance(batched, Box) and batched.shape:
        return Box(batched.low[0], batched.high[0], dtype=batched.dtype.type)
    if isinstance(batched, MultiDiscrete) and batched.nvec.ndim == 1:
        return Discrete(int(batched.nvec[0]), start=int(batched.start[0]), dtype=batched.dtype.type)
    return None


def chosen_actions(space: Space[Any], batch: Any, places: NDArray[np.intp]) -> Any:
    """Some rows of a batch, of which a leaf may be any array or list."""
    if isinstance(space, Dict) and isinstance(batch, dict):
        return {key: chosen_actions(part, batch[key], places) for key, part in space.spaces.items()}
    if isinstance(space, Tuple) and isinstance(batch, tuple):
        pairs = zip(space.spaces, batch, strict=True)
        return tuple(chosen_actions(part, values, places) for part, values in pairs)
    return nested.take(space, batch if isinstance(batch, tuple) else np.asarray(batch), places)


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
