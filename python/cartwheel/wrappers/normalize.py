"""Observations and rewards, normalized by their running moments."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium.spaces import Box

from cartwheel._cartwheel import ObservationNormalizer, RewardNormalizer
from cartwheel._internal.arguments import as_fraction, as_positive
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers._shared.keys import Parts, advised, flattens
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation
    from cartwheel.wrappers.batch import Batch, Ended, Finals

    #: The kind of each place, and of rows of agents, which places show again what they showed last,
    #: also as final observation.
    Marks = tuple[NDArray[np.uint8], NDArray[np.bool_] | None]

#: The attributes of moments.
_PARTS = ("mean", "var", "count")


class Normalizer(KeepsState, VectorWrapper):
    """Shows and keeps the running moments of its normalizers, which a subclass sets."""

    #: By the key of the part of the observations; ``""`` where there are no parts.
    _normalizers: dict[str, Any]
    #: The key of the normalizer's values of each environment in the wrapper's state.
    _of_rows: ClassVar[str]
    _limit: float | None
    _updates = True

    @property
    def clip(self) -> float | None:
        """The limit of normalized values, ``None`` for none; the space has it, so it is fixed."""
        return self._limit

    @property
    def update_running_mean(self) -> bool:
        """Whether batches change the moments; in :meth:`frozen` and ``evaluate`` none does."""
        return self._updates

    @update_running_mean.setter
    def update_running_mean(self, setting: bool) -> None:
        self._updates = bool(setting)
        self._set_frozen(is_frozen=self.is_frozen)

    @property
    def epsilon(self) -> float:
        """The number that is added to variances; can be set."""
        epsilon: float = next(iter(self._normalizers.values())).epsilon
        return epsilon

    @epsilon.setter
    def epsilon(self, epsilon: float) -> None:
        number = as_positive("epsilon", epsilon)
        for normalizer in self._normalizers.values():
            normalizer.epsilon = number

    def _set_frozen(self, *, is_frozen: bool) -> None:
        for normalizer in self._normalizers.values():
            normalizer.updates = self._updates and not is_frozen

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"mean"``, ``"var"`` and ``"count"``, and ``"update_running_mean"``.

        Also, of each environment, what it last showed (``"shown"``, of observations) or its
        discounted return (``"returns"``, of rewards). With ``keys`` each of them but
        ``"update_running_mean"`` is a dictionary by key.
        """
        state: dict[str, Any] = {name: {} for name in self._names}
        for key, normalizer in self._normalizers.items():
            for name, value in zip(self._names, normalizer.state(), strict=True):
                state[name][key] = value
        if self._is_whole:
            state = {name: by_key[""] for name, by_key in state.items()}
        return {**state, "update_running_mean": self.update_running_mean}

    def _restore(self, state: dict[str, Any]) -> None:
        for key, normalizer in self._normalizers.items():
            values = [state[name] for name in self._names]
            normalizer.set_state(*(values if self._is_whole else [each[key] for each in values]))
        self.update_running_mean = state["update_running_mean"]

    @property
    def _names(self) -> tuple[str, ...]:
        """The entries of the state that a normalizer has, in its order."""
        return ("mean", "var", "count", self._of_rows)

    @property
    def _is_whole(self) -> bool:
        return "" in self._normalizers

    def _moments(self) -> Any:
        """The moments, or a dictionary of them by key."""
        moments = {}
        for key, normalizer in self._normalizers.items():
            mean, var, count, _ = normalizer.state()
            moments[key] = RunningMoments(np.array(mean), np.array(var), count)
        return moments[""] if self._is_whole else moments

    def _set_moments(self, name: str, given: Any) -> None:
        by_key = {"": given} if self._is_whole else given
        if not isinstance(by_key, dict) or by_key.keys() != self._normalizers.keys():
            keys = sorted(self._normalizers)
            raise ValueError(f"`{name}` must be a dictionary with the keys {keys}, got {given!r}")
        coming = []
        for key, normalizer in self._normalizers.items():
            mean, var, _, rows = normalizer.state()
            try:
                moments = [np.array(getattr(by_key[key], part), np.float64) for part in _PARTS]
            except (AttributeError, ValueError) as error:
                raise TypeError(
                    f"`{name}` must have the attributes {', '.join(_PARTS)}, got {by_key[key]!r}"
                ) from error
            shapes = [part.shape for part in moments]
            if shapes != [np.shape(mean), np.shape(var), ()] or moments[2] <= 0:
                raise ValueError(
                    f"`{name}` must have mean and var of shape {np.shape(mean)} and a count above "
                    f"0, got the shapes {shapes} and the count {moments[2]}"
                )
            fits = [part if isinstance(mean, np.ndarray) else part.item() for part in moments[:2]]
            coming.append((normalizer, (*fits, moments[2].item(), rows)))
        for normalizer, state in coming:
            normalizer.set_state(*state)


class NormalizeObservation(Normalizer):
    """Normalizes observations by the running mean and variance of all environments.

    An observation is emitted as ``(observation - mean) / sqrt(var + epsilon)``, in ``float32``. The
    moments are ``float64`` and begin as Gymnasium's: mean 0, variance 1, count 1e-4.

    Each observation counts once, when it is new: the true next observation of every transition (in
    ``SAME_STEP`` the final observation), and the first one of every episode. In ``NEXT_STEP``
    a batch is one update. In the other modes the transitions of a batch are counted and emitted
    first, then rows that were reset; so ``SAME_STEP`` gives the bits of ``DISABLED`` with a reset
    of the rows that ended. Rows that are left alone, frozen or failed show again what they last
    showed, bit for bit.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import NormalizeObservation
        >>> envs = NormalizeObservation(cartwheel.make_vec("CartPole-v1", 4))
        >>> observations, infos = envs.reset(seed=0)
        >>> round(envs.obs_rms.count)
        4
        >>> envs.close()

    Source: ``gymnasium.wrappers.vector.NormalizeObservation`` of Gymnasium 1.4.0, which normalizes
    in ``NEXT_STEP`` only.

    Args:
        env: A vector environment whose observations, or the parts of ``keys``, are one array of
            numbers.
        epsilon: A number above 0, added to the variance.
        clip: Normalized observations are clipped to ``-clip`` and ``clip``, in ``float32``, and the
            space has these bounds; moments are those of all values. ``None``: no limit.
        keys: The parts of nested observations that are normalized, each by moments of its own, such
            as ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: The observation space, or that of a part, is not a ``Box``; or ``keys`` are not
            strings.
        ValueError: ``epsilon`` or ``clip`` is not above 0, or ``keys`` do not fit the space.
    """

    _normalizers: dict[str, ObservationNormalizer]
    _of_rows = "shown"
    row_entries = ("shown",)

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        epsilon: float = 1e-8,
        *,
        clip: float | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:
        epsilon = as_positive("epsilon", epsilon)
        limit = None if clip is None else as_positive("clip", clip)
        super().__init__(env)
        self._limit = limit
        self._space_before: Space[Any] = env.single_observation_space
        self._parts = None if keys is None else Parts(self._space_before, keys)
        spaces = {"": self._space_before} if self._parts is None else self._parts.spaces
        try:
            boxes = {key: _box(space) for key, space in spaces.items()}
        except TypeError as error:
            raise advised(error, self._space_before, _box) from None
        high = np.float32(np.inf if limit is None else limit)
        new: dict[str, Space[Any]] = {
            key: Box(-high, high, box.shape, np.float32) for key, box in boxes.items()
        }
        self._set_observation_space(new[""] if self._parts is None else self._parts.space_with(new))
        mode = self._source.autoreset_mode.value
        self._normalizers = {
            key: ObservationNormalizer(env.num_envs, box.shape, epsilon, mode)
            for key, box in boxes.items()
        }

    @property
    def obs_rms(self) -> Any:
        """Copies of mean, variance and count of the observations so far; with ``keys`` by key.

        It can be set: to the moments of another wrapper, or to Gymnasium's ``RunningMeanStd``.
        """
        return self._moments()

    @obs_rms.setter
    def obs_rms(self, moments: Any) -> None:
        self._set_moments("obs_rms", moments)

    def _operation(self) -> Operation:
        if self._parts is not None:
            return "transform", ()
        return "normalize_observations", (self._normalizers[""], self._limit)

    def transform(self, batch: Batch) -> None:
        """Counts new observations, and normalizes all."""
        ends, finals = batch.ended(self._space_before, self._source.autoreset_mode)
        kinds, rests = batch.kinds, None
        if batch.absent is not None:  # also where an agent ends before its environment
            old = kinds == FAILED
            if batch.final_absent is not None:
                old = old | batch.final_absent
            rests = batch.absent & old
            kinds = np.where(batch.absent, SHOWN, np.where(old, FAILED, kinds)).astype(np.uint8)
        if self._parts is not None:
            self._transform_parts(self._parts, batch, (kinds, rests), ends, finals)
            return
        last = batch.observations[:0] if finals is None else finals.observations
        batch.observations, last = self._normalized(
            self._normalizers[""], batch, (kinds, rests), batch.observations, ends and (*ends, last)
        )
        self._clip(batch.observations)
        if finals is not None:
            self._clip(last)
            finals.observations = last

    def _transform_parts(
        self, parts: Parts, batch: Batch, marks: Marks, ends: Ended | None, finals: Finals | None
    ) -> None:
        found = parts.of(batch.observations)
        last = {} if finals is None else parts.of(finals.observations)
        for key, normalizer in self._normalizers.items():
            ended = ends and (*ends, last.get(key, found[key][:0]))
            found[key], last[key] = self._normalized(normalizer, batch, marks, found[key], ended)
        self._clip(*found.values(), *(() if finals is None else last.values()))
        batch.observations = parts.replaced(batch.observations, found)
        if finals is not None:
            finals.observations = parts.replaced(finals.observations, last)
            finals.space = self.single_observation_space

    @staticmethod
    def _normalized(
        normalizer: ObservationNormalizer,
        batch: Batch,
        marks: Marks,
        observations: Any,
        ended: tuple[NDArray[np.intp], NDArray[np.intp], Any] | None,
    ) -> tuple[Any, Any]:
        kinds, rests = marks
        if ended is None or rests is None or not np.count_nonzero(rests):
            return normalizer.normalize(batch.env_index, kinds, observations, ended)
        ends, places, last = ended
        new = ~rests[places]
        others = ends[~rests[ends]], places[new], last[new]
        shown, found = normalizer.normalize(batch.env_index, kinds, observations, others)
        finals = shown[places]  # what rows that rest have shown before
        if np.count_nonzero(new):
            finals[new] = found
        return shown, finals

    def _clip(self, *arrays: NDArray[np.float32]) -> None:
        """Clips new arrays where they are."""
        if self._limit is not None:
            for array in arrays:
                np.clip(array, -self._limit, self._limit, out=array)


def _box(space: Space[Any]) -> Box:
    """The space, if it is one that can be normalized."""
    if not isinstance(space, Box):
        advice = ": flatten it with FlattenObservation" if flattens(space) else ""
        raise TypeError(
            f"only a Box of numbers can be normalized, got the observation space {space}{advice}."
        )
    return space


class NormalizeReward(Normalizer):
    """Divides rewards by the running deviation of the discounted return of all environments.

    For the transitions of a batch the return is ``G = gamma * G + reward``; then all these returns
    are counted, and each reward is emitted as ``reward / sqrt(var + epsilon)``, in ``float64``. At
    the end of an episode, and where a row is reset, ``G`` is 0 again. Rows that are not transitions
    emit 0 and are not counted. A step of an episode of which a step was lost is divided, too, but
    its return is unknown and does not count.

    This differs from Gymnasium 1.4.0, whose vector wrapper drops ``gamma * G`` in the step that
    terminates an episode, in ``NEXT_STEP`` carries ``G`` into the next one, and in a reset of some
    rows forgets that of all.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import NormalizeReward
        >>> envs = NormalizeReward(cartwheel.make_vec("CartPole-v1", 4))
        >>> observations, infos = envs.reset(seed=0)
        >>> _, rewards, *_ = envs.step(envs.action_space.sample())
        >>> rewards.dtype, round(envs.return_rms.count)
        (dtype('float64'), 4)
        >>> envs.close()

    Args:
        env: A vector environment.
        gamma: The discount, from 0 to 1.
        epsilon: A number above 0, added to the variance.
        clip: Normalized rewards are clipped to ``-clip`` and ``clip``. ``None``: no limit.

    Raises:
        ValueError: Rewards are arrays (``reward_space``), ``gamma`` is not from 0 to 1, or
            ``epsilon`` or ``clip`` is not above 0.
    """

    _normalizers: dict[str, RewardNormalizer]
    _of_rows = "returns"
    row_entries = ("returns",)

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        gamma: float = 0.99,
        epsilon: float = 1e-8,
        *,
        clip: float | None = None,
    ) -> None:
        check_rewards_are_numbers(env, "NormalizeReward")
        gamma, epsilon = as_fraction("gamma", gamma), as_positive("epsilon", epsilon)
        limit = None if clip is None else as_positive("clip", clip)
        super().__init__(env)
        self._limit = limit
        self._normalizer = RewardNormalizer(env.num_envs, gamma, epsilon)
        self._normalizers = {"": self._normalizer}

    @property
    def gamma(self) -> float:
        """The discount; can be set."""
        return self._normalizer.gamma

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        self._normalizer.gamma = as_fraction("gamma", gamma)

    @property
    def accumulated_reward(self) -> NDArray[np.float64]:
        """The discounted return of each environment's present episode; can be set.

        A copy, ``float64`` ``[num_envs]``. In the step that ends an episode it is 0 again.
        """
        return self._normalizer.state()[3]

    @accumulated_reward.setter
    def accumulated_reward(self, returns: Any) -> None:
        array = np.array(returns, np.float64)
        if array.shape != (self.num_envs,):
            raise ValueError(
                f"`accumulated_reward` must have the shape ({self.num_envs},), got {array.shape}"
            )
        self._normalizer.set_state(*self._normalizer.state()[:3], array)

    @property
    def return_rms(self) -> RunningMoments:
        """Mean, variance and count of the discounted returns so far, as copies; can be set."""
        moments: RunningMoments = self._moments()
        return moments

    @return_rms.setter
    def return_rms(self, moments: Any) -> None:
        self._set_moments("return_rms", moments)

    def _operation(self) -> Operation:
        return "normalize_rewards", (self._normalizer, self._limit)

    def transform(self, batch: Batch) -> None:
        """Counts the returns of transitions, and divides their rewards."""
        if batch.rewards is None:
            self._normalizer.reset(batch.env_index, batch.kinds)
            return
        batch.rewards = self._normalizer.normalize(
            (batch.env_index, batch.kinds, batch.rewards, batch.terminations, batch.truncations)
        )
        if self._limit is not None:
            np.clip(batch.rewards, -self._limit, self._limit, out=batch.rewards)


@dataclasses.dataclass(frozen=True, eq=False)
class RunningMoments:
    """Mean and variance of all numbers seen so far: copies.

    They begin as Gymnasium's, with mean 0, variance 1 and a count of 1e-4, and are ``float64``.

    Attributes:
        mean: The mean of each number of an observation, or of the returns.
        var: The variance of each, of the whole population.
        count: The number of observations or returns, and 1e-4.
    """

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: float
