"""Seeds and options of resets, until batches show the episodes that they began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import Flag
from cartwheel._internal.reset_arguments import by_row, copied, without_rows
from cartwheel.vector.state_dict import as_entries, check_keys, from_entries
from cartwheel.workers.channels import pickled
from cartwheel.wrappers.batch import INCOMPLETE, TRANSITION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.wrappers.batch import Batch


class Beginnings:
    """Seeds and options of resets that were sent, and of the next automatic resets.

    Attributes:
        flag: Set if any row has some. If not, batches need not be changed.
    """

    __slots__ = ("_next", "_num_envs", "_options", "_seeds", "flag")

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs
        #: The seeds of rows whose reset has not been shown.
        self._seeds: NDArray[np.int64] | None = None
        #: The options of these rows, where there are any.
        self._options: dict[int, dict[str, Any]] = {}
        #: Seed and options of the next automatic reset of rows, where ``next_reset`` gave some.
        self._next: dict[int, tuple[int, dict[str, Any] | None]] = {}
        self.flag = Flag()

    def get_state(self) -> dict[str, Any]:
        """Returns seeds and options of resets that were not shown yet, and of the next ones."""
        seeds: dict[int, int | None] = dict.fromkeys(self._options)
        if self._seeds is not None:
            rows = np.flatnonzero(self._seeds >= 0)
            seeds |= dict(zip(rows.tolist(), self._seeds[rows].tolist(), strict=True))
        sent = {row: (seed, self._options.get(row)) for row, seed in seeds.items()}
        coming = {row: (None if seed < 0 else seed, own) for row, (seed, own) in self._next.items()}
        return {"sent": as_entries(sent, pickled), "next": as_entries(coming, pickled)}

    def set_state(self, state: Any, path: str) -> None:
        """Continues with a state of as many rows.

        Raises:
            ValueError: The state has another form; ``path`` names it. Nothing has changed.
            Exception: Options cannot be unpickled.
        """
        check_keys(path, state, {"sent", "next"})
        sent = from_entries(state["sent"], self._num_envs, f"{path}['sent']")
        coming = from_entries(state["next"], self._num_envs, f"{path}['next']")
        seeded = {row: seed for row, (seed, _) in sent.items() if seed is not None}
        self._seeds = np.full(self._num_envs, -1, np.int64) if seeded else None
        if self._seeds is not None:
            self._seeds[list(seeded)] = list(seeded.values())
        self._options = {row: own for row, (_, own) in sent.items() if own is not None}
        self._next = {
            row: (-1 if seed is None else seed, own) for row, (seed, own) in coming.items()
        }
        self._count()

    def note(
        self, rows: Sequence[int], seeds: Any, options: dict[int, dict[str, Any]] | None
    ) -> None:
        """Resets of rows were sent with these seeds (``None``: none) and options."""
        if seeds is not None and self._seeds is None:
            self._seeds = np.full(self._num_envs, -1, np.int64)
        if self._seeds is not None:
            self._seeds[rows] = -1 if seeds is None else seeds
        if options or self._options:
            for row in rows:
                self._options.pop(row, None)
            self._options.update(options or {})
        self._count()

    def forget_sent(self, rows: NDArray[np.int64], kinds: NDArray[np.uint8]) -> None:
        """Rows were stepped, by their kinds: no batch will show a reset before that any more."""
        if self._seeds is not None or self._options:
            self.note(rows[(kinds == TRANSITION) | (kinds == INCOMPLETE)].tolist(), None, None)

    def seeded(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of these rows have a seed for a reset that was not shown yet."""
        return np.zeros(len(rows), np.bool_) if self._seeds is None else self._seeds[rows] >= 0

    def keep_next(self, rows: list[int], seeds: Any, options: ResetOptions) -> None:
        """``next_reset`` gave a seed or ``None`` to each of these rows, and options."""
        own = options_of(options, rows) or {}
        for row, seed in zip(rows, seeds_of(seeds, rows).tolist(), strict=True):
            self._next.pop(row, None)
            if seed >= 0 or row in own:
                self._next[row] = seed, own.get(row)
        self._count()

    def forget_next(self, rows: Sequence[int]) -> None:
        """Drops what ``next_reset`` gave these rows: a reset or a dead worker discarded it."""
        if self._next:
            for row in rows:
                self._next.pop(row, None)
            self._count()

    def use_next(self, rows: NDArray[np.int64]) -> None:
        """Automatic resets of these rows used what ``next_reset`` gave them."""
        if self._next:
            for row in rows.tolist():
                if row in self._next:
                    seed, options = self._next.pop(row)
                    self.note([row], [seed], {row: options} if options else None)
            self._count()

    def attach_to(self, batch: Batch) -> None:
        """Adds to a batch the seeds and options of the resets that it shows."""
        if self._seeds is not None:
            at: Any = slice(None) if batch.env_index is None else batch.env_index
            seeds = self._seeds[at].copy()
            self._seeds[at] = -1
            batch.seeds = seeds if (seeds >= 0).any() else None
            if not (self._seeds >= 0).any():
                self._seeds = None
        if self._options:
            numbers = range(self._num_envs) if batch.env_index is None else batch.rows.tolist()
            sent = self._options
            batch.options = {row: sent.pop(row) for row in numbers if row in sent} or None
        self._count()

    def _count(self) -> None:
        self.flag.is_set = self._seeds is not None or bool(self._options) or bool(self._next)


def seeds_of(seed: Any, rows: Sequence[int]) -> NDArray[np.int64]:
    """Returns the seed of each row, from the ``seed`` of a reset: an integer, or a list.

    Where none was given, or one above the greatest ``int64``, it is -1.
    """
    is_one = isinstance(seed, int | np.integer)
    seeds = [int(seed) + row for row in rows] if is_one else seed
    max_seed = np.iinfo(np.int64).max
    known = [-1 if given is None or given > max_seed else int(given) for given in seeds]
    return np.array(known, np.int64)


def options_of(options: ResetOptions, rows: Sequence[int]) -> dict[int, dict[str, Any]] | None:
    """Returns the options of each row that has some, without those that select rows."""
    pairs = zip(rows, by_row(without_rows(options), len(rows)), strict=True)
    return {row: copied(given) for row, given in pairs if given} or None
