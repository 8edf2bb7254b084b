"""What both wrappers share that divide by a running deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from cartwheel.wrapping.state import check_state
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from cartwheel._cartwheel import ObservationNormalizer, RewardNormalizer


class Normalizer(VectorWrapper):
    """Shows and keeps the running moments of :attr:`_normalizer`, which a subclass sets."""

    _normalizer: ObservationNormalizer | RewardNormalizer
    #: What the normalizer knows of each environment, as a key of the wrapper's state.
    _of_rows: ClassVar[str]

    @property
    def update_running_mean(self) -> bool:
        """Whether batches change the moments; set it to ``False`` for evaluations."""
        return self._normalizer.updates

    @update_running_mean.setter
    def update_running_mean(self, setting: bool) -> None:
        self._normalizer.updates = setting

    def get_wrapper_state(self) -> dict[str, Any]:
        """What the wrapper knows, for :meth:`set_wrapper_state`: copies, which can be pickled.

        Returns:
            ``"mean"``, ``"var"`` and ``"count"``; ``"update_running_mean"``; of each environment,
            what it last showed (``"shown"``, of observations) or its discounted return
            (``"returns"``, of rewards).
        """
        names = ("mean", "var", "count", self._of_rows)
        state = dict(zip(names, self._normalizer.state(), strict=True))
        return {**state, "update_running_mean": self.update_running_mean}

    def set_wrapper_state(self, state: dict[str, Any]) -> None:
        """Goes on with a state of :meth:`get_wrapper_state`, of as many environments.

        Restore the environments first: a reset and ``set_state`` begin episodes, which counts.

        Raises:
            ValueError: The state is not one of this wrapper. Nothing was changed.
        """
        check_state(state, self.get_wrapper_state())
        self._normalizer.set_state(
            state["mean"], state["var"], state["count"], state[self._of_rows]
        )
        self._normalizer.updates = state["update_running_mean"]
