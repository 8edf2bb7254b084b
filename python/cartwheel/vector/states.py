"""States of rows: saving, restoring all rows or none, and resets that load states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel.errors import add_note, is_raised_by_env

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._cartwheel import Pool

    #: Observations and infos of some rows.
    Received = tuple[Any, dict[str, Any]]


def saved(
    pool: Pool,
    callbacks: Any,
    rows: list[int],
    calling: str = "get_state",
    *,
    with_failed: bool = False,
) -> list[bytes]:
    """Returns the states of rows, by a control call for the method ``calling``.

    Rows that failed, or lost their environment, have states that are refused where they are
    restored: these rows have to be reset.

    Raises:
        ValueError: There is such a row, unless ``with_failed``.
    """
    states = list(pool.call(callbacks.pack_save(rows), rows, calling, callbacks.timeout))
    unsaved = None if with_failed else callbacks.first_unsaved(states)
    if unsaved is not None:
        place, why = unsaved
        raise ValueError(f"row {rows[place]} cannot be saved: {why}")
    return states


def restored(
    pool: Pool, callbacks: Any, rows: list[int], states: list[bytes], space: Space[Any]
) -> tuple[Any, dict[str, Any]]:
    """Restores rows from checked states; returns their observations and infos, in their order.

    Raises:
        Exception: The error of a row whose state was refused; no row has changed then.
    """
    before = saved(pool, callbacks, rows, "set_state", with_failed=True)
    return _joined(rows, _restored(pool, callbacks, rows, states, before), space)


def loaded(pool: Pool, callbacks: Any, states: list[bytes], space: Space[Any], calling: str) -> Any:
    """Restores all rows from checked states for the method ``calling``; returns what they show.

    Raises:
        Exception: As for :func:`restored`; no row has changed then.
    """
    rows = list(range(len(states)))
    before = saved(pool, callbacks, rows, calling, with_failed=True)
    batches = _restored(pool, callbacks, rows, states, before)
    return _in_order(rows, batches, space)[0]


def _restored(
    pool: Pool, callbacks: Any, rows: list[int], states: list[bytes], before: list[bytes]
) -> list[Received]:
    """Restores rows; if one is refused, all of them go back to the states ``before``.

    Raises:
        Exception: The error of a row whose state was refused.
    """
    batches, refused = _received(pool, callbacks, rows, states)
    if refused:
        # Frames of the tracebacks refer to both lists, so each exception would refer to itself.
        try:
            _, failed = _received(pool, callbacks, rows, before)
            for why in map(repr, failed):
                add_note(refused[0], f"the rows could not be restored to their old states: {why}")
            failed.clear()
            raise refused[0]
        finally:
            refused.clear()
    return batches


def _received(
    pool: Pool, callbacks: Any, rows: list[int], states: list[bytes]
) -> tuple[list[Received], list[Exception]]:
    """Restores rows; returns batches of all of them, and the errors of states that were refused."""
    batches: list[Received] = []
    refused: list[Exception] = []
    messages = callbacks.pack_row_states(rows, states)
    try:
        pool.send_reset(rows, messages, False, "set_state", in_order=False)
        while pool.in_flight():
            try:
                batches.append(pool.recv_resets(callbacks.timeout, "set_state"))
            except Exception as error:  # the other batches are still received
                if not is_raised_by_env(error):
                    raise
                refused.append(error)
    except BaseException:  # Ctrl-C between two batches: a reset may drop the rest
        pool.give_up()
        refused.clear()
        raise
    return batches, refused


def _joined(
    rows: list[int], batches: list[Received], space: Space[Any]
) -> tuple[Any, dict[str, Any]]:
    """Joins batches of some rows, in any order, to one in the order of ``rows``."""
    observations, order = _in_order(rows, batches, space)
    if order is None:
        return batches[0]
    joined = {}
    for key in dict.fromkeys(key for _, infos in batches for key in infos):
        values = next(infos[key] for _, infos in batches if key in infos)
        parts = [
            infos.get(key, np.zeros(len(_rows_of(infos)), values.dtype)) for _, infos in batches
        ]
        joined[key] = np.concatenate(parts)[order]
    return observations, joined


def _in_order(
    rows: list[int], batches: list[Received], space: Space[Any]
) -> tuple[Any, NDArray[np.intp] | None]:
    """Returns observations in the order of ``rows``, and their places; ``None`` in this order."""
    arrived = np.concatenate([_rows_of(infos) for _, infos in batches])
    if len(batches) == 1 and arrived.tolist() == rows:
        return batches[0][0], None
    place = {int(row): at for at, row in enumerate(arrived)}
    order = np.array([place[row] for row in rows], np.intp)
    observations = nested.join(space, [observations for observations, _ in batches])
    return nested.take(space, observations, order), order


def _rows_of(infos: dict[str, Any]) -> NDArray[Any]:
    """Returns the rows of a batch, which the infos of EnvPool have under another name."""
    rows: NDArray[Any] = infos["env_index" if "env_index" in infos else "env_id"]
    return rows


def sample_states(pool: Pool, callbacks: Any, seeds: list[int | None]) -> list[bytes]:
    """Resets rows with seeds, and returns their states, for :func:`use_cache`.

    The rows have to be reset afterwards.
    """
    states: list[bytes] = callbacks.sampled(_answers(pool, callbacks, callbacks.pack_sample(seeds)))
    return states


def use_cache(
    pool: Pool, callbacks: Any, states: list[bytes], key: int, draws: list[tuple[int, int]]
) -> None:
    """Makes every later reset load a state.

    Args:
        pool: An idle pool.
        callbacks: Its callbacks.
        states: States from :func:`sample_states`.
        key: Part of every draw that depends on a seed.
        draws: For each row the key of its draws, and the number of draws so far.

    Raises:
        ValueError: A state was changed, or is of another environment; nothing has changed then.
    """
    _answers(pool, callbacks, callbacks.pack_cache(states, key, draws))


def cache_draws(pool: Pool, callbacks: Any) -> list[tuple[int, int]]:
    """Returns for each row the key of its draws, and the number of draws so far."""
    return list(_answers(pool, callbacks, callbacks.pack_draws()))


def _answers(pool: Pool, callbacks: Any, messages: list[Any]) -> tuple[Any, ...]:
    return pool.call(messages, None, "CachedReset", callbacks.timeout)
