"""Arrays of a rollout while it is recorded: steps, final observations and carried state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.vector.infos import is_dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._device.mirror import Mirror
    from cartwheel.rollouts.collecting.policy_calls import Answers


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
        self.mirror: Mirror | None = None  # from the first call of the policy on
        self.copies = not getattr(envs, "fills_rollouts", False)
        if not self.copies:
            slab = given.rollout(capacity)
            self.observations: Any = slab.observations
            self.rewards = slab.rewards
            self.terminated, self.truncated = slab.terminated, slab.truncated
        else:
            shape = (capacity, envs.num_envs)
            observations = batch_space(envs.single_observation_space, envs.num_envs)
            self.observations = nested.empty(observations, capacity + 1, "observations")
            self.rewards = np.empty((*shape, *reward_shape_of(envs)))
            self.terminated, self.truncated = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
            nested.assign(self.observations, 0, shown)

    @property
    def is_full(self) -> bool:
        """Whether all steps are recorded."""
        return self.steps == self.capacity

    def on_device(self, mirror: Callable[[Any], Mirror]) -> Any:
        """Returns the present observations on a device, to which they are copied once.

        Args:
            mirror: Allocates memory for all observations there.
        """
        if self.mirror is None:
            self.mirror = mirror(self.observations)
        return self.mirror.put(self.steps)

    def act(self, result: Any, step: int) -> Any:
        """Records the policy's result for the next step; changes nothing if it does not fit.

        Args:
            result: What the policy returned.
            step: The step of the rollout, for errors.

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
        actions, extras = self._answers.checked(result, self.num_envs, step)
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


def join_mirrors(segments: list[Segment], mirror: Callable[[Any], Mirror]) -> Any:
    """Returns the observations of all segments on a device."""
    parts = []
    for number, segment in enumerate(segments):
        segment.on_device(mirror)
        assert segment.mirror is not None
        rows = slice(1 if number else 0, segment.steps + 1)
        parts.append(nested.at(segment.mirror.tensors, rows))
    return parts[0] if len(parts) == 1 else nested.concat(parts)


@dataclasses.dataclass(frozen=True)
class Carry:
    """The results of the last step before a rollout, arrays ``[N]``; zeros after a reset.

    Attributes:
        rewards: Rewards of the step; with a ``reward_space`` of shape ``(k,)``, they and
            ``returns`` are ``[N, k]``.
        terminated: Flags of the step.
        truncated: Flags of the step.
        is_first: Whether the observation after the step begins an episode.
        returns: The sum of the rewards of the step's episode, up to and with the step.
        lengths: The number of steps of this episode, up to and with the step, ``int64``.
    """

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which episodes ended in the step, ``[N]``."""
        return self.terminated | self.truncated

    @classmethod
    def after_reset(cls, num_envs: int, reward_shape: tuple[int, ...] = ()) -> Carry:
        """Returns the state after a reset of every environment."""
        zeros, no_rows = np.zeros((num_envs, *reward_shape)), np.zeros(num_envs, np.bool_)
        return cls(
            rewards=zeros,
            terminated=no_rows,
            truncated=no_rows.copy(),
            is_first=~no_rows,
            returns=zeros.copy(),
            lengths=np.zeros(num_envs, np.int64),
        )

    def take(self, index: NDArray[np.int64]) -> Carry:
        """Returns the state of the rows at ``index``."""
        return Carry(**{name: part[index] for name, part in vars(self).items()})

    def replaced(self, index: NDArray[np.int64], other: Carry) -> Carry:
        """Returns the state in which the rows at ``index`` have the state of ``other``."""
        parts = {name: part.copy() for name, part in vars(self).items()}
        for name, part in vars(other).items():
            parts[name][index] = part
        return Carry(**parts)


class Finals:
    """Collects final observations in the order of time."""

    def __init__(self, space: Space[Any]) -> None:
        """Begins without observations; ``space`` is the space of a single environment."""
        self.space = space
        self._batches: list[Any] = []
        self._infos: dict[int, dict[str, Any]] = {}
        #: By step, which rows ended, and a batch of their final observations.
        self._dense: dict[int, tuple[NDArray[np.bool_], Any]] = {}

    def add(self, observations: Any) -> None:
        """Adds a batch of final observations."""
        self._batches.append(observations)

    def add_infos(self, step: int, infos: dict[str, Any]) -> None:
        """Adds the final observations of ``infos``, if any; :meth:`joined` batches them."""
        if "final_obs" not in infos:
            return
        finals, ended = infos["final_obs"], infos["_final_obs"]
        if not is_dense(finals):
            self._infos[step] = {"final_obs": finals, "_final_obs": ended}
        elif ended.any():  # a copy of these rows: kept batches would be as large as the rollout
            self._dense[step] = ended, nested.at(finals, ended)

    def of_infos(self, step: int, infos: dict[str, Any], envs: NDArray[np.bool_]) -> Any:
        """Returns a batch of the final observations of ``infos`` for the marked environments.

        Raises:
            RuntimeError: An observation is missing.
        """
        if "final_obs" in infos and is_dense(infos["final_obs"]):
            _require(step, envs, infos["_final_obs"])
            return nested.at(infos["final_obs"], envs)
        return nested.stack(self.space, _found(step, infos, envs))

    def joined(self, replaced: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        """Returns all final observations, ``[K, *shape]``, and ``final_index``, ``[K, 2]``.

        Args:
            replaced: Which rows have a final observation, ``[T, N]``.

        Raises:
            RuntimeError: An observation is missing.
        """
        flat = np.flatnonzero(replaced)
        index = np.stack(np.divmod(flat, replaced.shape[1]), axis=1)
        if self._batches:
            return nested.concat(self._batches), index
        steps = np.flatnonzero(replaced.any(axis=1)).tolist()
        if self._dense:
            parts = [self._kept(step, replaced[step]) for step in steps]
            if parts:
                return nested.concat(parts), index
            return nested.stack(self.space, []), index
        observations: list[Any] = []
        for step in steps:
            observations += _found(step, self._infos.get(step, {}), replaced[step])
        return nested.stack(self.space, observations), index

    def _kept(self, step: int, envs: NDArray[np.bool_]) -> Any:
        """Returns a batch of dense final observations for the marked environments."""
        ended, batch = self._dense.get(step, (np.zeros_like(envs), None))
        _require(step, envs, ended)
        return nested.at(batch, envs[ended])


def _require(step: int, envs: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
    """Raises ``RuntimeError`` unless all marked environments have ended."""
    missing = envs & ~ended
    if missing.any():
        raise RuntimeError(
            f"environments {np.flatnonzero(missing).tolist()} ended an episode at step {step} in "
            "the mode SAME_STEP, but `infos` had no `final_obs` of them: does a wrapper remove it?"
        )


def _found(step: int, infos: dict[str, Any], envs: NDArray[np.bool_]) -> list[Any]:
    """Returns the final observation of each marked environment."""
    if not envs.any():  # of the others they may be lost
        return []
    _require(step, envs, infos["_final_obs"] if "final_obs" in infos else np.zeros_like(envs))
    found: list[Any] = infos["final_obs"][envs].tolist()
    return found
