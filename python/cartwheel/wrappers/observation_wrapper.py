"""Wrappers whose observations are functions of the wrapped environment's observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.spaces import nested
from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv

    from cartwheel.wrapping.batch import Batch


class ObservationWrapper(VectorWrapper):
    """Replaces observations by a function of them alone.

    A subclass overrides :meth:`_observe`. It is called once for a batch of any number of rows, and
    once more for the final observations of ``SAME_STEP``. Rows that are left alone pass through it
    again, so it gives the same result for the same observation.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Keeps the space of the observations that come in."""
        super().__init__(envs)
        self._space_before: Space[Any] = envs.single_observation_space

    def _observe(self, observations: Any) -> Any:
        """Returns the new observations of a batch; never writes into the old ones."""
        raise NotImplementedError

    def _transform(self, batch: Batch) -> None:
        finals = batch.finals(self._space_before)
        batch.observations = self._observe(batch.observations)
        if finals is not None:
            space = self.single_observation_space
            finals.observations = (
                self._observe(finals.observations)
                if len(finals.places)  # dense ones may be of no row, which functions do not expect
                else nested.take(space, batch.observations, finals.places)
            )
            finals.space = space
