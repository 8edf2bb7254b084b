"""The arrays of consecutive steps while they are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel.spaces import nested

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.rollouts.collecting.answers import Answers


class Segment:
    """Arrays with a time axis of ``capacity`` steps, of which ``steps`` are filled.

    With a vector environment of cartwheel, the arrays are a rollout slab: workers write into it
    without a copy. So they are in wrappers of cartwheel that change neither observations nor
    rewards nor flags. With any other vector environment, batches are copied.
    """

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], capacity: int, shown: Any, answers: Answers
    ) -> None:
        """Begins at the observations ``shown`` that ``envs`` returned last."""
        given: Any = envs
        self.capacity, self.num_envs, self.steps = capacity, envs.num_envs, 0
        self._answers = answers
        self.actions = nested.apply(
            lambda form: np.empty((capacity, *form.shape[1:]), form.dtype), answers.actions
        )
        # Dtype and shape of actions that need no conversion: a cheap check in every step.
        self._dtype = getattr(self.actions, "dtype", None)
        self._shape = getattr(self.actions, "shape", ())[1:]
        self.extras: dict[str, NDArray[Any]] | None = None  # known from the first step on
        self.copies = not getattr(envs, "fills_rollouts", False)
        if not self.copies:
            slab = given.rollout(capacity)
            self.observations: Any = slab.observations
            self.rewards = slab.rewards
            self.terminated, self.truncated = slab.terminations, slab.truncations
        else:
            shape = (capacity, envs.num_envs)
            observations = batch_space(envs.single_observation_space, envs.num_envs)
            self.observations = nested.empty(observations, capacity + 1, "observations")
            self.rewards = np.empty(shape)
            self.terminated, self.truncated = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
            nested.assign(self.observations, 0, shown)

    @property
    def is_full(self) -> bool:
        """Whether all steps are recorded."""
        return self.steps == self.capacity

    def act(self, result: Any) -> Any:
        """Records the policy's result for the next step; changes nothing if it does not fit.

        Returns:
            The actions, as arrays.

        Raises:
            TypeError: Actions or extras have another kind of dtype than before.
            ValueError: There is not one action or one extra for each environment.
        """
        if (
            isinstance(result, np.ndarray)
            and result.dtype is self._dtype
            and result.shape == self._shape
            and not self._answers.extras
        ):
            self.actions[self.steps] = result
            self._answers.extras = self.extras = {}
            return result
        actions, extras = self._answers.checked(result, self.num_envs, self.steps)
        if self.extras is None:
            self.extras = {
                name: np.empty((self.capacity, *form.shape[1:]), form.dtype)
                for name, form in (self._answers.extras or {}).items()
            }
        nested.assign(self.extras, self.steps, extras)
        nested.assign(self.actions, self.steps, actions)
        return actions

    def take_in(self, step: tuple[Any, Any, Any, Any, Any]) -> None:
        """Counts a step, and copies its results if they are not in a slab."""
        if self.copies:
            observations, rewards, terminations, truncations, _ = step
            nested.assign(self.observations, self.steps + 1, observations)
            self.rewards[self.steps] = rewards
            self.terminated[self.steps] = terminations
            self.truncated[self.steps] = truncations
        self.steps += 1

    def show(self, envs: NDArray[Any], observations: Any) -> None:
        """Replaces the present observations of some environments."""
        nested.assign(self.observations, (self.steps, envs), observations)


def join(segments: list[Segment]) -> dict[str, Any]:
    """Returns the arrays of all segments, by name: views of one segment, copies of several."""
    if len(segments) == 1:
        only, steps = segments[0], segments[0].steps
        return {
            "observations": nested.at(only.observations, slice(steps + 1)),
            "actions": nested.at(only.actions, slice(steps)),
            "rewards": only.rewards[:steps],
            "terminated": only.terminated[:steps],
            "truncated": only.truncated[:steps],
            "extras": {name: extra[:steps] for name, extra in (only.extras or {}).items()},
        }
    parts = [join([segment]) for segment in segments]
    # The first observation of a segment is the last one of the segment before.
    for part in parts[1:]:
        part["observations"] = nested.at(part["observations"], slice(1, None))
    names = ("observations", "actions", "rewards", "terminated", "truncated", "extras")
    return {name: nested.concat([part[name] for part in parts]) for name in names}
