"""The interface of an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cartwheel.rollouts.buffers import Carry
    from cartwheel.rollouts.rollout import Rollout


class Source(Protocol):
    """Collects rollouts in one order.

    Attributes:
        num_steps: Steps of a rollout, which may change between rollouts.
    """

    num_steps: Any

    @property
    def counts_episodes(self) -> bool:
        """Whether a rollout has a number of whole episodes."""

    @property
    def waited(self) -> float:
        """Seconds in which it waited for environments."""

    @property
    def needs_reset(self) -> bool:
        """Whether the next rollout begins with a reset."""

    @property
    def is_between_rollouts(self) -> bool:
        """Whether every row is at the beginning of the next rollout."""

    @property
    def total(self) -> int:
        """Steps of all columns of a rollout, or its episodes."""

    @property
    def done(self) -> int:
        """The number of them that the next rollout has already."""

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which of the observations that rows show begin an episode, ``[N]``."""

    @property
    def carry(self) -> Carry | None:
        """The state before the next rollout."""

    @property
    def shown(self) -> Any:
        """The first observations of the next rollout."""

    def begin(self, carry: Carry, shown: Any) -> None:
        """Continues at the observations ``shown``, after the step of ``carry``."""

    @property
    def turn(self) -> int:
        """The group that the policy gets next; 0 without groups."""

    @turn.setter
    def turn(self, turn: int) -> None: ...

    def collect(self) -> Rollout:
        """Collects the next rollout."""

    def rest(self) -> None:
        """Receives all rows in flight and sends nothing."""

    def drop(self) -> None:
        """Drops unfinished rollouts; a reset comes next."""
