"""Steps of a vector environment with wrappers, copied into the arrays of a rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.vector.rollout_arrays import RolloutArrays


class StepRecording:
    """Copies steps into the arrays of a rollout.

    Attributes:
        arrays: The arrays, which are the caller's.
    """

    def __init__(self, envs: Any, present: Any, num_steps: int) -> None:
        """Begins at the ``present`` observations of all rows.

        Raises:
            TypeError: Observations have no fixed shape.
        """
        shape = (num_steps, envs.num_envs)
        space = batch_space(envs.single_observation_space, envs.num_envs)
        observations = nested.empty(space, num_steps + 1, "observations")
        rewards = np.zeros((*shape, *reward_shape_of(envs)))
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
