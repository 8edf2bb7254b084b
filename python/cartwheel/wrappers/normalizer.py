"""What both wrappers share that divide by a running deviation."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

from cartwheel.wrapping.state import KeepsState
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartwheel._cartwheel import ObservationNormalizer, RewardNormalizer


class Normalizer(KeepsState, VectorWrapper):
    """Shows and keeps the running moments of :attr:`_normalizer`, which a subclass sets."""

    _normalizer: ObservationNormalizer | RewardNormalizer
    #: What the normalizer knows of each environment, as a key of the wrapper's state.
    _of_rows: ClassVar[str]
    _updates = True
    _is_frozen = False

    @property
    def update_running_mean(self) -> bool:
        """Whether batches change the moments; in :func:`~cartwheel.evaluate` they never do."""
        return self._updates

    @update_running_mean.setter
    def update_running_mean(self, setting: bool) -> None:
        self._updates = bool(setting)
        self._normalizer.updates = self._updates and not self._is_frozen

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        before, self._is_frozen = self._is_frozen, True
        self._normalizer.updates = False
        try:
            yield
        finally:
            self._is_frozen = before
            self.update_running_mean = self._updates

    def get_wrapper_state(self) -> dict[str, Any]:
        """The state: ``"mean"``, ``"var"`` and ``"count"``, and ``"update_running_mean"``.

        Also, of each environment, what it last showed (``"shown"``, of observations) or its
        discounted return (``"returns"``, of rewards).
        """
        names = ("mean", "var", "count", self._of_rows)
        state = dict(zip(names, self._normalizer.state(), strict=True))
        return {**state, "update_running_mean": self.update_running_mean}

    def _go_on(self, state: dict[str, Any]) -> None:
        self._normalizer.set_state(
            state["mean"], state["var"], state["count"], state[self._of_rows]
        )
        self.update_running_mean = state["update_running_mean"]
