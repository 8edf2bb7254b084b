"""Steps of a vector environment with wrappers, copied into the arrays of a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel.vector.rollout_arrays import RolloutArrays

if TYPE_CHECKING:
    from gymnasium.spaces import Box, Space


class StepRecording:
    """Copies steps into the arrays of a rollout.

    Attributes:
        arrays: The arrays, which are the caller's.
    """

    def __init__(
        self,
        space: Space[Any],
        reward_space: Box | None,
        present: Any,
        num_steps: int,
        num_envs: int,
    ) -> None:
        """Begins at the present observations.

        Args:
            space: The observation space of one environment.
            reward_space: The space of its rewards, if they are arrays.
            present: Observations of all rows.
            num_steps: The number of steps.
            num_envs: The number of rows.

        Raises:
            TypeError: Observations have no fixed shape.
        """
        observations = nested.empty(batch_space(space, num_envs), num_steps + 1, "observations")
        shape = (num_steps, num_envs)
        rewards = np.zeros((*shape, *(() if reward_space is None else reward_space.shape)))
        self.arrays: RolloutArrays[Any] = RolloutArrays(
            observations, rewards, np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        )
        nested.assign(observations, 0, present)
        self._steps = 0

    def check_step(self, env_index: Any) -> None:
        """Refuses steps of some rows, which the arrays have no place for.

        Raises:
            RuntimeError: There are row numbers.
        """
        if env_index is not None:
            raise self._refusal("step")

    def check_reset(self, *, in_parts: bool) -> None:
        """Refuses resets that show some rows only, where the first observations are missing.

        Raises:
            RuntimeError: There was no step yet, and the reset is one of some rows.
        """
        if in_parts and self._steps == 0:
            raise self._refusal("reset")

    def begin(self, observations: Any) -> None:
        """A reset shows these observations; before the first step they are those of all rows."""
        if self._steps == 0:
            nested.assign(self.arrays.observations, 0, observations)

    def _refusal(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"a rollout is being recorded ({self._steps} of {self.arrays.num_steps} steps): {what} "
            "all rows at once, or end it by `end_rollout()`"
        )

    def add(self, step: Any) -> bool:
        """Adds the result of a step; returns whether the rollout is complete."""
        arrays, at = self.arrays, self._steps
        nested.assign(arrays.observations, at + 1, step[0])
        arrays.rewards[at], arrays.terminated[at], arrays.truncated[at] = step[1:4]
        self._steps += 1
        return self._steps == arrays.num_steps
