"""Infos of a batch: their form, rows that failed, and successes that environments report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The mask of rows whose infos were lost with their worker.
LOST = "_infos_lost"
#: The mask of rows that lost their environment with its worker.
RESTARTED = "_worker_restarted"
#: Masks of the rows whose environment was replaced.
FAILURES = ("_env_error", RESTARTED, LOST)


def check_infos(infos: Any) -> None:
    """Checks that infos are a dictionary, which shows failed rows and final observations.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    if not isinstance(infos, dict):
        raise TypeError(
            "the infos of vector environments must be a dict of arrays with one entry for each "
            f"environment, got {type(infos)}: remove the wrapper that changes the infos, such as "
            "gymnasium.wrappers.vector.DictInfoToList"
        )


def is_dense(finals: Any) -> bool:
    """Whether final observations are a batch of all rows, and not one object a row."""
    return not (isinstance(finals, np.ndarray) and finals.dtype == object)


def failed_rows(infos: dict[str, Any]) -> NDArray[np.bool_] | None:
    """The rows whose environment was replaced, by ``on_error="restart"`` or a worker's restart.

    Args:
        infos: The infos of one step.

    Returns:
        A mask of the batch; ``None`` if no row failed.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    check_infos(infos)
    masks = [infos[name] for name in FAILURES if name in infos]
    return np.logical_or.reduce(masks) if masks else None


#: Keys under which environments report success; of each row the first that is there counts.
SUCCESS = ("is_success", "success")
#: The key under which environments report failure.
FAIL = ("fail",)


class Reports(NamedTuple):
    """What the places of a batch say.

    Attributes:
        flags: ``bool``; false where nothing is said.
        said: ``bool``: whether something is said.
    """

    flags: NDArray[np.bool_]
    said: NDArray[np.bool_]


def has_reports(infos: dict[str, Any], keys: tuple[str, ...]) -> bool:
    """Whether the infos of a step or a reset have one of these keys, or did at an end."""
    finals = infos.get("final_info", ())
    return any(key in infos or key in finals for key in keys)


def step_reports(
    infos: dict[str, Any], keys: tuple[str, ...], over: NDArray[np.bool_], places: Any = None
) -> Reports | None:
    """What places say in the infos of a step; in ``SAME_STEP`` those that are over say it at last.

    Args:
        infos: Of the step. Where there is ``final_info``, it has the last infos of episodes, and
            the places that are over show the infos of a reset.
        keys: The first key that says something counts.
        over: Which of the places are over, ``bool``.
        places: Places in the arrays of ``infos``, ascending; ``None`` for all.

    Returns:
        One report for each of the places; ``None`` if nobody says anything.

    Raises:
        TypeError: As for :func:`reports`.
    """
    finals = infos.get("final_info")
    if finals is None or not np.count_nonzero(over):
        return reports(infos, keys, places)
    ended = np.flatnonzero(over)
    last = reports(finals, keys, ended if places is None else places[ended])
    running = np.flatnonzero(~over)
    others = reports(infos, keys, running if places is None else places[running])
    if last is None and others is None:
        return None
    both = Reports(np.zeros(len(over), np.bool_), np.zeros(len(over), np.bool_))
    for where, part in ((ended, last), (running, others)):
        if part is not None:
            both.flags[where], both.said[where] = part
    return both


def reports(infos: dict[str, Any], keys: tuple[str, ...], places: Any = None) -> Reports | None:
    """What places say in infos.

    Args:
        infos: Of a batch.
        keys: The first key that says something of a place counts.
        places: Places in the arrays of ``infos``, ascending; ``None`` for all.

    Returns:
        One report for each of the places; ``None`` if nobody says anything.

    Raises:
        TypeError: What is said is no flag, number or array of them.
    """
    found: Reports | None = None
    for key in keys:
        mask = infos.get(f"_{key}")
        if mask is None:
            continue
        if places is not None and len(places) == len(mask):
            places = None  # all of them
        mask = mask if places is None else mask[places]
        if found is not None:
            mask = mask & ~found.said
        if not np.count_nonzero(mask):
            continue
        values = infos[key]
        if found is None and places is None and _are_flags(values):
            found = Reports(values & mask, mask.copy())  # the mask is the caller's
            continue
        asked = np.flatnonzero(mask)
        said, flags = _flags(key, values, asked if places is None else places[asked])
        if found is None:
            found = Reports(np.zeros(len(mask), np.bool_), np.zeros(len(mask), np.bool_))
        found.flags[asked[said]] = flags[said]
        found.said[asked[said]] = True
    return None if found is None or not np.count_nonzero(found.said) else found


def _are_flags(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 1


def _flags(
    key: str, values: Any, places: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For which places the infos of a key say something, and what; an array is true if all is.

    Raises:
        TypeError: It is no flag, number or array of them.
    """
    if not isinstance(values, dict):
        values = np.asarray(values)
        if values.dtype.kind in "biuf":
            flags = values[places].reshape(len(places), -1).astype(np.bool_).all(axis=1)
            return np.ones(len(places), np.bool_), flags
        if values.dtype == object:  # Gymnasium keeps `np.bool_`, lists and `None` as they are
            answers = [None if said is None else _flag(key, said) for said in values[places]]
            return np.array([said is not None for said in answers]), np.array(answers, np.bool_)
    raise _no_flag(key, values if isinstance(values, dict) else values[places[0]])


def _flag(key: str, said: Any) -> bool:
    """What one environment said.

    Raises:
        TypeError: It is no flag, number or array of them.
    """
    try:
        array = np.asarray(said)
    except ValueError:  # ragged
        raise _no_flag(key, said) from None
    if array.dtype.kind not in "biuf":
        raise _no_flag(key, said)
    return bool(array.all())


def _no_flag(key: str, said: Any) -> TypeError:
    what = "failed" if key in FAIL else "succeeded"
    return TypeError(
        f"the infos of a step say in {key!r} whether the episode {what}, which must be a flag, a "
        f"number or an array of them, got {type(said)}: give it another name"
    )
