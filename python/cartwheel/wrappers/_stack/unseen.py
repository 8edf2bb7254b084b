"""Results that wrappers missed, until batches show where their rows are.

They were lost, or came before a wrapper was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cartwheel._cartwheel import Flag
from cartwheel.vector.state_dict import check_array, check_keys
from cartwheel.wrappers.batch import INCOMPLETE, RESET, SHOWN, TRANSITION, Late

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: One observation was lost, which is the present one.
_NEW: Final = 1
#: The present observation is the first one of an episode.
_BEGUN: Final = 2
#: Several observations were lost, or it is not known whether any was.
_SKIPPED: Final = 3
#: Above every number of wrappers.
_ALL: Final = np.iinfo(np.intp).max

#: The attributes with an entry for each row, without the underscore.
_COLUMNS: Final = ("what", "seen_by", "begun", "is_seeded", "is_uncounted")


class Unseen:
    """The rows whose present observation, or the beginning of whose episode, was not in a batch.

    Attributes:
        flag: Set if there are any.
        number: How many times results were lost so far.
        last: Which of these times was the last one of each environment, 0 for none.
    """

    __slots__ = (
        *("_begun", "_is_seeded", "_is_uncounted", "_joined", "_seen_by", "_what"),
        *("flag", "last", "number"),
    )

    def __init__(self, num_envs: int) -> None:
        self._what = np.zeros(num_envs, np.uint8)
        #: How many wrappers, from the innermost on, have seen what was lost.
        self._seen_by = np.zeros(num_envs, np.intp)
        #: How many episodes have begun in what was lost, since the last one with a seed of its own.
        self._begun = np.zeros(num_envs, np.int64)
        #: Whether the first of these was given a seed.
        self._is_seeded = np.zeros(num_envs, np.bool_)
        #: Whether another number may have begun, or for some of the wrappers.
        self._is_uncounted = np.zeros(num_envs, np.bool_)
        #: The first wrapper, from the innermost on, that was made after the present episode began.
        self._joined = np.full(num_envs, _ALL)
        self.flag = Flag()
        self.number = 0
        self.last = np.zeros(num_envs, np.int64)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Returns what is known of each row, for :meth:`set_state`."""
        return {name: getattr(self, f"_{name}").copy() for name in _COLUMNS}

    def set_state(self, state: Any, path: str) -> None:
        """Continues with a state of as many rows.

        Raises:
            ValueError: The state has another form; ``path`` names it. Nothing has changed.
        """
        check_keys(path, state, _COLUMNS)
        for name in _COLUMNS:
            own = getattr(self, f"_{name}")
            check_array(f"{path}[{name!r}]", state[name], own.shape, own.dtype)
        for name in _COLUMNS:
            getattr(self, f"_{name}")[:] = state[name]
        self._joined[:] = _ALL
        self._note()

    def lose(self, rows: NDArray[np.int64], begun: Any, seen_by: int, seeded: Any = False) -> None:
        """Results were lost.

        Args:
            rows: The rows, all of which have a new observation.
            begun: For which of them it is the first one of an episode.
            seen_by: How many wrappers have seen them.
            seeded: Which of these episodes were given a seed.
        """
        before = self._what[rows] > 0
        self._what[rows] = np.where(begun, _BEGUN, np.where(before, _SKIPPED, _NEW))
        earlier = np.where(before, self._seen_by[rows], seen_by)
        self._seen_by[rows] = np.minimum(earlier, seen_by)
        counts = np.where(seeded, 0, self._begun[rows])
        self._is_uncounted[rows] |= (earlier != seen_by) & (counts > 0)
        self._is_uncounted[rows] &= ~np.asarray(seeded)
        self._is_seeded[rows] |= seeded
        self._begun[rows] = counts + begun
        self._note()
        self.number += 1
        self.last[rows] = self.number

    def take_back(self, rows: NDArray[np.int64], late: Late, seen_by: int) -> None:
        """A batch that showed where its rows are was lost, after ``seen_by`` wrappers saw it."""
        for name, column in zip(_COLUMNS, late.before, strict=True):
            getattr(self, f"_{name}")[rows] = column
        self._seen_by[rows] = np.maximum(self._seen_by[rows], seen_by)
        self._note()

    def join(self, number: int, *, begins: bool) -> None:
        """A wrapper with this number, from the innermost on, has seen nothing of what rows show.

        ``begins``: all rows show the first observation of an episode.
        """
        is_new = self._what == 0  # of the others, wrappers further inside have not seen it, either
        self._what[is_new], self._seen_by[is_new] = _SKIPPED, number
        if not begins:
            np.minimum(self._joined, number, out=self._joined)
        self._note()

    @property
    def joined(self) -> NDArray[np.intp]:
        """The rows in an episode that began before some wrapper was made."""
        return np.flatnonzero(self._joined < _ALL)

    def begun(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the present observation of rows is the first of an episode, and was lost."""
        begun: NDArray[np.bool_] = self._what[rows] == _BEGUN
        return begun

    def mark_uncertain(self, rows: NDArray[np.int64], *, begins: bool = False) -> None:
        """It is not known whether the results that these rows lost were seen, or were there.

        ``begins``: an episode may have begun in them.
        """
        what = self._what[rows]
        self._what[rows] = np.where(what == _NEW, _SKIPPED, what)
        self._is_uncounted[rows] |= begins | (self._begun[rows] > 0)

    def show(self, kinds: NDArray[np.uint8]) -> tuple[Late | None, NDArray[np.intp]]:
        """All rows are shown, by a reset of some rows.

        Args:
            kinds: The kinds of a batch of all rows for wrappers that missed nothing.

        Returns:
            The batch for the others, if there are any; and the rows that have begun an episode.
        """
        new = (kinds == SHOWN) & (self._what > 0)
        begun = new & (self._what == _BEGUN)
        late = np.where(begun, RESET, np.where(new, INCOMPLETE, kinds)).astype(np.uint8)
        self._joined[late == RESET] = _ALL
        told = self._late(slice(None), late, new & (self._what == _SKIPPED), new, begun)
        return told, np.flatnonzero(begun)

    def step(self, rows: Any, kinds: NDArray[np.uint8], over: Any) -> Late | None:
        """Rows of a batch were stepped, received, or reset.

        Args:
            rows: The rows; ``None`` for all.
            kinds: The kinds of the batch for wrappers that missed nothing.
            over: Which episodes ended in it.

        Returns:
            The batch for the others, if there are any.
        """
        at: Any = slice(None) if rows is None else rows
        what = self._what[at]
        stepped = ((kinds == TRANSITION) | (kinds == INCOMPLETE)) & (what > 0)
        frozen = (kinds == SHOWN) & (what > 0)  # the last observation of its episode
        late = np.where(frozen, INCOMPLETE, kinds).astype(np.uint8)
        gaps = stepped | (frozen & (what == _SKIPPED))
        joined = np.where(kinds == TRANSITION, self._joined[at], _ALL)
        self._joined[at] = np.where(over | (kinds == RESET), _ALL, self._joined[at])
        return self._late(at, late, gaps, stepped | frozen, np.zeros_like(stepped), joined)

    def forget(self, rows: Any) -> None:
        """Rows (``None``: all) begin an episode: what was lost before does not matter."""
        at: Any = slice(None) if rows is None else rows
        self._joined[at] = _ALL
        self._show(at)

    def _show(self, at: Any) -> None:
        """Rows show where they are."""
        self._what[at] = self._begun[at] = 0
        self._is_seeded[at] = self._is_uncounted[at] = False
        self._note()

    def _note(self) -> None:
        self.flag.is_set = bool(self._what.any() or (self._joined < _ALL).any())

    def _late(
        self,
        at: Any,
        kinds: NDArray[np.uint8],
        gaps: NDArray[np.bool_],
        new: NDArray[np.bool_],
        shown: NDArray[np.bool_],
        joined: NDArray[np.intp] | None = None,
    ) -> Late | None:
        """``shown``: the places that show the first observation of the last episode that began."""
        skipped = self._begun[at] - shown
        shows_seed = shown & self._is_seeded[at] & (skipped == 0)
        skipped[(self._is_uncounted[at] | self._is_seeded[at]) & ~shows_seed] = -1
        new = new | (skipped != 0)
        seen_by = np.where(new, self._seen_by[at], _ALL)
        before = tuple(getattr(self, f"_{name}")[at].copy() for name in _COLUMNS)
        self._show(at)
        is_late = new.any() or (joined is not None and (joined < _ALL).any())
        return Late(kinds, gaps, skipped, seen_by, joined, before) if is_late else None
