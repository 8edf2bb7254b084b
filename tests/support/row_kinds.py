"""The kinds of the rows of a vector environment, in NumPy: the oracle of ``RowKinds``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RowKinds:
    """Tells transitions, resets, repeated rows and failures apart, in every autoreset mode."""

    def __init__(self, num_envs: int, mode: AutoresetMode) -> None:
        """All rows are running; a vector environment has to be reset first anyway."""
        self._mode = mode
        #: Rows whose last step ended their episode, and that have not begun another one.
        self._over = np.zeros(num_envs, np.bool_)
        #: Rows whose reset was sent and has not been received.
        self._resetting = np.zeros(num_envs, np.bool_)
        #: Rows of which a step was lost in the present episode.
        self._incomplete = np.zeros(num_envs, np.bool_)

    def reset(self, rows: NDArray[np.int64] | None, mask: NDArray[np.bool_] | None) -> Any:
        """An explicit reset returned: of all rows, of the rows of a mask, or of these ``rows``.

        Returns:
            The kinds of the batch.
        """
        again: Any = slice(None) if rows is None else rows
        again = again if mask is None else mask
        self._over[again] = self._resetting[again] = self._incomplete[again] = False
        if mask is not None:
            return np.where(mask, RESET, SHOWN).astype(np.uint8)
        return np.full(len(self._over) if rows is None else len(rows), RESET, np.uint8)

    def ahead(self, rows: NDArray[np.int64] | None) -> Any:
        """Returns what the next step of these rows (``None``: all) will do."""
        at: Any = slice(None) if rows is None else rows
        ended = {AutoresetMode.NEXT_STEP: RESET, AutoresetMode.SAME_STEP: TRANSITION}
        after = np.where(self._over[at], ended.get(self._mode, SHOWN), TRANSITION)
        return np.where(self._resetting[at], RESET, after).astype(np.uint8)

    def send_reset(self, rows: Any) -> None:
        """Resets of these rows were sent; :meth:`step` finds them when they are received."""
        self._resetting[rows] = True

    def lose(self, rows: Any, is_known: bool) -> None:  # noqa: FBT001 - as the extension has it
        """The results of these rows were lost; ``is_known``: but for which episodes ended."""
        rows = slice(None) if rows is None else rows
        self._incomplete[rows] = True
        if not is_known:
            self._over[rows] = False

    def step(
        self,
        rows: NDArray[np.int64] | None,
        terminations: NDArray[np.bool_],
        truncations: NDArray[np.bool_],
        failed: NDArray[np.bool_] | None,
    ) -> NDArray[np.uint8]:
        """A step returned, or a batch was received.

        Args:
            rows: The environments of the batch, ``int64`` ``[K]``; ``None`` for all.
            terminations: ``bool`` ``[K]``.
            truncations: ``bool`` ``[K]``.
            failed: Whose environments were replaced, ``bool`` ``[K]``; ``None``: none.

        Returns:
            The kinds of the batch, ``uint8`` ``[K]``.
        """
        at: Any = slice(None) if rows is None else rows
        was_over, over = self._over[at], terminations | truncations
        kinds = np.where(self._incomplete[at], INCOMPLETE, TRANSITION).astype(np.uint8)
        if failed is not None:
            kinds[failed & ~terminations & truncations] = FAILED
        if self._mode == AutoresetMode.NEXT_STEP:
            kinds[was_over] = RESET
        elif self._mode == AutoresetMode.DISABLED:
            kinds[was_over] = SHOWN
            over = over | was_over
        kinds[self._resetting[at]] = RESET
        over = over & (kinds != RESET)  # a row that was over, too, goes on
        self._resetting[at] = False
        self._over[at] = over if self._mode != AutoresetMode.SAME_STEP else False
        self._incomplete[at] = (kinds == INCOMPLETE) & ~over
        return kinds
