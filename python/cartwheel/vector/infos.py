"""Infos of a batch: their form, rows that failed, and outcomes that environments report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

#: The mask of rows whose infos were lost with their worker.
LOST = "_infos_lost"
#: The mask of rows that lost their environment with its worker.
RESTARTED = "_worker_restarted"
#: Masks of the rows whose environment was replaced.
FAILURES = ("_env_error", RESTARTED, LOST)


def check_infos(infos: Any) -> None:
    """Checks that infos are a dictionary, which marks failed rows and has final observations.

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
    """Whether final observations are a batch of all rows instead of one object for each row."""
    return not (isinstance(finals, np.ndarray) and finals.dtype == object)


def failed_rows(
    infos: dict[str, Any], masks: tuple[str, ...] = FAILURES
) -> NDArray[np.bool_] | None:
    """Returns the rows whose environment was replaced, by ``on_error`` or a worker's restart.

    An environment may have infos of its own with these names: a flag under ``env_error``, false
    under the others.

    Args:
        infos: Of a batch.
        masks: Some of :data:`FAILURES`.

    Returns:
        A mask of the batch; ``None`` if no row failed.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    check_infos(infos)
    found = [_mask_of_failures(infos, name) for name in masks if name in infos]
    return np.logical_or.reduce(found) if found else None


def _mask_of_failures(infos: dict[str, Any], mask: str) -> NDArray[np.bool_]:
    values = infos.get(mask.removeprefix("_"))
    if not isinstance(values, np.ndarray):  # a wrapper left them out
        whole: NDArray[np.bool_] = infos[mask]
        return whole
    is_text = mask == "_env_error"
    told = [isinstance(value, str) if is_text else value is True for value in values.tolist()]
    failed: NDArray[np.bool_] = np.logical_and(np.asarray(infos[mask]), told)
    return failed


def failed_steps(
    infos: dict[str, Any],
    terminated: NDArray[np.bool_],
    mode: AutoresetMode,
    places: Any = slice(None),
) -> NDArray[np.bool_] | None:
    """Returns which steps of a batch are not transitions, because the environment was replaced.

    A step that terminated an episode did not fail, even if the reset after it did. In ``SAME_STEP``
    its final observation may have been lost with the worker: then it is none, either.

    Args:
        infos: The infos of one step.
        terminated: Of these places, as the result.
        mode: The autoreset mode.
        places: Places in the arrays of ``infos``; by default all.

    Raises:
        TypeError: The infos are not a dictionary.
    """
    failed = failed_rows(infos)
    if failed is None:
        return None
    whole = terminated
    if mode == AutoresetMode.SAME_STEP:
        whole = terminated & (infos["_final_obs"][places] if "_final_obs" in infos else False)
    steps: NDArray[np.bool_] = failed[places] & ~whole
    return steps


def masks_of(infos: Iterable[Any]) -> set[str]:
    """Returns the keys that masks have: ``"_"`` and the text of a key, which need not be a text."""
    return {f"_{key}" for key in infos}


def infos_by_row(infos: dict[str, Any], num_rows: int) -> list[dict[str, Any]]:
    """Takes the infos of a batch apart.

    Args:
        infos: Arrays with their masks, ``_name``, and dictionaries of such arrays; an array without
            a mask has a value for every row.
        num_rows: The rows of the batch.

    Returns:
        One dictionary for each row, with the keys that this row has. ``env_index`` is left out.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(num_rows)]
    masks = masks_of(infos)
    for key, values in infos.items():
        if key == "env_index" or key in masks:
            continue
        mask = infos.get(f"_{key}")
        having = range(num_rows) if mask is None else np.flatnonzero(mask).tolist()
        column = infos_by_row(values, num_rows) if isinstance(values, dict) else values
        for row in having:
            rows[row][key] = column[row]
    return rows


#: Keys under which environments report success; for each row, the first one present counts.
SUCCESS = ("is_success", "success")
#: The key under which environments report failure.
FAIL = ("fail",)


class Outcomes(NamedTuple):
    """Successes or failures that environments report, for the places of a batch.

    Attributes:
        flags: ``bool``; false where nothing is reported.
        reported: ``bool``: whether something is reported.
    """

    flags: NDArray[np.bool_]
    reported: NDArray[np.bool_]


def final_infos(infos: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the last infos of the episodes that ended in a step, ``None`` if there are none.

    Without final observations, ``final_info`` is an info of the environment's own.
    """
    finals = infos.get("final_info")
    return finals if isinstance(finals, dict) and "_final_obs" in infos else None


def step_outcomes(
    infos: dict[str, Any],
    finals: dict[str, Any] | None,
    keys: tuple[str, ...],
    over: NDArray[np.bool_],
    places: Any = None,
) -> Outcomes | None:
    """Returns the outcomes in the infos of a step; in ``SAME_STEP`` those of the final infos.

    Args:
        infos: The infos of the step.
        finals: Its :func:`final_infos`. If there are some, the places that are over have the infos
            of a reset.
        keys: Keys in order of precedence.
        over: Which of the places are over, ``bool``.
        places: Places in the arrays of ``infos``, ascending; ``None`` for all.

    Returns:
        One outcome for each of the places; ``None`` if nothing is reported.

    Raises:
        TypeError: As for :func:`outcomes`.
    """
    if finals is None or not np.count_nonzero(over):
        return outcomes(infos, keys, places)
    ended = np.flatnonzero(over)
    last = outcomes(finals, keys, ended if places is None else places[ended])
    running = np.flatnonzero(~over)
    others = outcomes(infos, keys, running if places is None else places[running])
    if last is None and others is None:
        return None
    both = Outcomes(np.zeros(len(over), np.bool_), np.zeros(len(over), np.bool_))
    for where, part in ((ended, last), (running, others)):
        if part is not None:
            both.flags[where], both.reported[where] = part
    return both


def outcomes(infos: dict[str, Any], keys: tuple[str, ...], places: Any = None) -> Outcomes | None:
    """Returns the outcomes in the infos of a batch.

    Args:
        infos: The infos.
        keys: Keys in order of precedence, for each place.
        places: Places in the arrays of ``infos``, ascending; ``None`` for all.

    Returns:
        One outcome for each of the places; ``None`` if nothing is reported.

    Raises:
        TypeError: A value is not a flag, a number or an array of them.
    """
    found: Outcomes | None = None
    for key in keys:
        mask = infos.get(f"_{key}")
        if mask is None:
            continue
        if places is not None and len(places) == len(mask):
            places = None  # all of them
        mask = mask if places is None else mask[places]
        if found is not None:
            mask = mask & ~found.reported
        if not np.count_nonzero(mask):
            continue
        values = infos[key]
        if found is None and places is None and _are_flags(values):
            found = Outcomes(values & mask, mask.copy())  # the mask is the caller's
            continue
        asked = np.flatnonzero(mask)
        reported, flags = _flags(key, values, asked if places is None else places[asked])
        if found is None:
            found = Outcomes(np.zeros(len(mask), np.bool_), np.zeros(len(mask), np.bool_))
        found.flags[asked[reported]] = flags[reported]
        found.reported[asked[reported]] = True
    return None if found is None or not np.count_nonzero(found.reported) else found


def _are_flags(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 1


def _flags(
    key: str, values: Any, places: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns for which places a key has values, and the values; an array is true if all of it is.

    Raises:
        TypeError: A value is not a flag, a number or an array of them.
    """
    if not isinstance(values, dict):
        values = np.asarray(values)
        if values.dtype.kind in "biuf":
            flags = values[places].reshape(len(places), -1).astype(np.bool_).all(axis=1)
            return np.ones(len(places), np.bool_), flags
        if values.dtype == object:  # Gymnasium keeps `np.bool_`, lists and `None` as they are
            answers = [None if value is None else _flag(key, value) for value in values[places]]
            return np.array([answer is not None for answer in answers]), np.array(answers, np.bool_)
    raise _no_flag(key, values if isinstance(values, dict) else values[places[0]])


def _flag(key: str, value: Any) -> bool:
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        raise _no_flag(key, value) from None
    if array.dtype.kind not in "biuf":
        raise _no_flag(key, value)
    return bool(array.all())


def _no_flag(key: str, value: Any) -> TypeError:
    what = "failed" if key in FAIL else "succeeded"
    return TypeError(
        f"the infos of a step say in {key!r} whether the episode {what}, which must be a flag, a "
        f"number or an array of them, got {type(value)}: give it another name"
    )
