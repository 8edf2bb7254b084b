"""Rollout arrays of wrapped vector environments: copies of what steps return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel.spaces import nested
from cartwheel.vector.rollout_arrays import RolloutArrays

if TYPE_CHECKING:
    from gymnasium.spaces import Space


class StepRecording:
    """Copies steps into the arrays of a rollout.

    Attributes:
        arrays: The arrays, which are the caller's.
    """

    def __init__(self, space: Space[Any], present: Any, num_steps: int) -> None:
        """Begins at the present observations.

        Args:
            space: The observation space of one environment.
            present: Observations of all rows.
            num_steps: The number of steps.

        Raises:
            TypeError: Observations have no fixed shape.
        """
        num_envs = len(next(array for _, array in nested.named(present, "observations")))
        observations = nested.empty(batch_space(space, num_envs), num_steps + 1, "observations")
        shape = (num_steps, num_envs)
        self.arrays: RolloutArrays[Any] = RolloutArrays(
            observations, np.zeros(shape), np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        )
        nested.assign(observations, 0, present)
        self._steps = 0

    def add(self, step: Any) -> bool:
        """Adds the result of a step; returns whether the rollout is complete."""
        arrays, at = self.arrays, self._steps
        nested.assign(arrays.observations, at + 1, step[0])
        arrays.rewards[at], arrays.terminations[at], arrays.truncations[at] = step[1:4]
        self._steps += 1
        return self._steps == arrays.num_steps
