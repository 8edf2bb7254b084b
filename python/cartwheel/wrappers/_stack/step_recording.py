"""Rollouts of a vector environment with wrappers: its own arrays, or copies of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.vector.rollout_arrays import RolloutArrays

if TYPE_CHECKING:
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.wrappers._stack.source import Source


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


class RecordsRollouts:
    """The methods of a wrapper that record rollouts."""

    #: Whether observations of ``rollout`` differ from those of the wrapped environment, or rewards,
    #: terminations or truncations do. Then the arrays of a rollout are copies.
    _changes_steps = True
    env: Any
    _source: Source
    _recording: StepRecording | None
    _plan: Any

    @classmethod
    def _makes_calls(cls) -> bool:
        """Whether the class overrides a call: wrappers around it call it as an environment."""
        raise NotImplementedError

    def _present(self) -> Any:
        """Returns the present observations of all rows."""
        raise NotImplementedError

    @property
    def fills_rollouts(self) -> bool:
        """Whether :meth:`rollout` has what :meth:`step` returns, and no step is copied for it."""
        return not self._changes_rollouts() and getattr(self._source.envs, "fills_rollouts", False)

    def rollout(self, num_steps: int) -> RolloutArrays[Any]:
        """Records the next ``num_steps`` steps into contiguous arrays.

        The arrays have what :meth:`step` returns. They are filled without a copy if no wrapper
        changes observations, rewards or flags; otherwise every step is copied into them.

        Args:
            num_steps: The number of steps, from 1 to 65534.

        Raises:
            TypeError: The wrapped environment has no rollouts.
            Exception: As for the wrapped environment.
        """
        self._source.check_steps_rows("rollout")
        self.end_rollout()
        if not self._changes_rollouts():
            arrays: RolloutArrays[Any] = self._source.envs.rollout(num_steps)
            return arrays
        num_steps = as_integer("num_steps", num_steps, 1, 65534)
        recording = StepRecording(self, self._present(), num_steps)
        self._recording, self._plan = recording, None
        return recording.arrays

    def end_rollout(self) -> None:
        """Ends the present rollout, if there is one; it keeps the steps that it has."""
        self._recording = self._plan = None
        if self._source.steps_rows:
            self._source.envs.end_rollout()

    def _changes_rollouts(self) -> bool:
        inner = self.env
        if self._changes_steps or not isinstance(inner, RecordsRollouts) or inner._makes_calls():
            return self._changes_steps
        return inner._changes_rollouts()

    def _check_reset(self, options: ResetOptions) -> None:
        if self._recording is not None:
            self._recording.check_reset(in_parts=self._source.resets_parts(options))

    def _begin_rollout(self, result: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
        """Records what a reset shows, if a rollout begins with it."""
        if self._recording is not None:
            self._recording.begin(result[0])
        return result

    def _record(self, step: Any) -> None:
        if self._recording is not None and self._recording.add(step):
            self._recording = self._plan = None
