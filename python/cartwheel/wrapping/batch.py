"""A batch on its way through wrappers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.wrapping.finals import NAMES, Finals

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    Ended = tuple[NDArray[np.intp], NDArray[np.intp]]

#: The kinds of rows, as :attr:`Batch.kinds` has them.
#: The environment was stepped.
TRANSITION: Final = 0
#: The row shows the first observation of an episode: an explicit reset, or the autoreset step of
#: ``NEXT_STEP``. Reward 0, no flags.
RESET: Final = 1
#: The row was left alone and shows its last observation again: a row outside of a ``reset_mask``,
#: or a finished one (``on_done="freeze"``).
SHOWN: Final = 2
#: The environment failed and was replaced; the episode was truncated by that. The observation is
#: no new one.
FAILED: Final = 3
#: A transition of an episode of which a step was lost, because a call raised or was given up. Its
#: observation is new; its sums are incomplete. In the batch of a reset: a row that was left alone
#: shows an observation that was lost before.
INCOMPLETE: Final = 4
#: No place of a batch.
NOWHERE: Final = np.zeros(0, np.intp)


class Late(NamedTuple):
    """What a batch is for the wrappers that have not seen the results before it.

    Attributes:
        kinds: What each place is for them.
        gaps: At which places they missed the observation before the present one.
        seen_by: For each place, the number of the first such wrapper, from the innermost on.
    """

    kinds: NDArray[np.uint8]
    gaps: NDArray[np.bool_]
    seen_by: NDArray[np.intp]


@dataclasses.dataclass(eq=False, repr=False)
class Batch:
    """The results of one call, on their way from the environments to the caller.

    Wrappers replace attributes. They never write into the arrays and dictionaries, which may be
    views of rollouts, or belong to others.

    Attributes:
        rows: The environment of each place of the batch, ``int64`` ``[K]``; ``None`` if the batch
            has all environments in their order.
        kinds: What each place is, ``uint8`` ``[K]``: :data:`TRANSITION`, :data:`RESET`,
            :data:`SHOWN`, :data:`FAILED` or :data:`INCOMPLETE`.
        observations: In the form of the batched observation space, with ``K`` rows.
        rewards: ``float64`` ``[K]``; ``None`` for the result of ``reset``.
        terminations: ``bool`` ``[K]``; ``None`` for the result of ``reset``.
        truncations: ``bool`` ``[K]``; ``None`` for the result of ``reset``.
        infos: As returned by the environments; without final observations once a wrapper has taken
            them by :meth:`finals`.
        seeds: The seed that the reset of each place was given, by ``reset`` or, for an automatic
            one, by ``next_reset``, ``int64`` ``[K]``; -1 where none was given, or one above the
            greatest ``int64``. In ``SAME_STEP`` a place that ended an episode has the seed of the
            next one. ``None`` if no place of the batch was given any.
        options: The options that resets of this batch were given, without those that select rows:
            a copy for each environment that was given any; ``None`` if there is none.
        is_restored: Whether the rows continue from states (``set_state``), and not from resets.
        late: What the batch is for wrappers to which results before it were lost; ``None`` if there
            were none.
        gaps: Of which places the wrapper that has the batch now missed the observation before the
            present one, ``bool`` ``[K]``; ``None`` if there are none.
    """

    rows: NDArray[np.int64] | None
    kinds: NDArray[np.uint8]
    observations: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: dict[str, Any]
    # A step makes one such object, so what is rare is set afterwards.
    seeds: NDArray[np.int64] | None = dataclasses.field(default=None, init=False)
    options: dict[int, dict[str, Any]] | None = dataclasses.field(default=None, init=False)
    is_restored: bool = dataclasses.field(default=False, init=False)
    late: Late | None = dataclasses.field(default=None, init=False)
    gaps: NDArray[np.bool_] | None = dataclasses.field(default=None, init=False)
    _kinds_of_others: NDArray[np.uint8] | None = dataclasses.field(default=None, init=False)
    _finals: Finals | None = dataclasses.field(default=None, init=False)

    def finals(self, space: Space[Any]) -> Finals | None:
        """Takes the final observations of a step in ``SAME_STEP`` out of the infos.

        Args:
            space: The observation space of one environment, as of the present observations.

        Returns:
            The rows that ended an episode and show the first observation of the next one; ``None``
            if there are none. A wrapper replaces their ``observations``; they are put back into
            the infos at the end.
        """
        if self._finals is None and self.infos and any(name in self.infos for name in NAMES):
            self._finals, self.infos = Finals.of(space, self.infos)
        return self._finals

    def catch_up(self, number: int) -> None:
        """Comes to the wrapper with this number, from the innermost on; :attr:`late` is there."""
        assert self.late is not None
        if self._kinds_of_others is None:
            self._kinds_of_others = self.kinds
        kinds, gaps, seen_by = self.late
        missed = seen_by <= number
        self.kinds = np.where(missed, kinds, self._kinds_of_others)
        gaps = gaps & missed
        self.gaps = gaps if gaps.any() else None

    def set_finals(self, finals: Finals) -> None:
        """Sets the final observations, which infos do not have."""
        self._finals = finals

    def ended(self, space: Space[Any], mode: AutoresetMode) -> tuple[Ended | None, Finals | None]:
        """The places that ended an episode in ``SAME_STEP``.

        Args:
            space: As for :meth:`finals`.
            mode: The autoreset mode; in another one than ``SAME_STEP`` there are none.

        Returns:
            The places that show the first observation of the next episode, ascending, and those
            among them whose final observations are known; ``None`` if there are none. And these
            observations; ``None`` if none is known. They may be lost with a worker.
        """
        if mode != AutoresetMode.SAME_STEP or self.rewards is None or not self.infos:
            return None, None
        finals = self.finals(space)
        ends = np.flatnonzero(self.terminations | self.truncations)
        if not len(ends):
            return None, None
        return (ends, NOWHERE if finals is None else finals.places), finals

    def add_info(self, key: str, values: Any, mask: NDArray[np.bool_]) -> None:
        """Adds an info with its mask, as Gymnasium names it; the dictionary received is kept."""
        self.infos = {**self.infos, key: values, f"_{key}": mask}

    def put_finals_back(self) -> None:
        """Puts final observations that :meth:`finals` took into the infos again."""
        if self._finals is not None:
            self.infos = self._finals.into(self.infos, self.observations, len(self.kinds))
            self._finals = None

    def as_step(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """The result of ``step``."""
        if self._finals is not None:
            self.put_finals_back()
        return self.observations, self.rewards, self.terminations, self.truncations, self.infos

    def as_reset(self) -> tuple[Any, dict[str, Any]]:
        """The result of ``reset``."""
        return self.observations, self.infos
