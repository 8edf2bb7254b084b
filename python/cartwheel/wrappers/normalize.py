"""Observations and rewards, normalized by their running moments."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium.spaces import Box

from cartwheel._cartwheel import ObservationNormalizer, RewardNormalizer
from cartwheel._internal.arguments import as_fraction, as_positive
from cartwheel.wrappers.base import KeepsState, VectorWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.batch import Batch


class Normalizer(KeepsState, VectorWrapper):
    """Shows and keeps the running moments of :attr:`_normalizer`, which a subclass sets."""

    _normalizer: ObservationNormalizer | RewardNormalizer
    #: The key of the normalizer's values of each environment in the wrapper's state.
    _of_rows: ClassVar[str]
    _updates = True

    @property
    def update_running_mean(self) -> bool:
        """Whether batches change the moments; in :meth:`frozen` and ``evaluate`` none does."""
        return self._updates

    @update_running_mean.setter
    def update_running_mean(self, setting: bool) -> None:
        self._updates = bool(setting)
        self._set_frozen(is_frozen=self.is_frozen)

    def _set_frozen(self, *, is_frozen: bool) -> None:
        self._normalizer.updates = self._updates and not is_frozen

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"mean"``, ``"var"`` and ``"count"``, and ``"update_running_mean"``.

        Also, of each environment, what it last showed (``"shown"``, of observations) or its
        discounted return (``"returns"``, of rewards).
        """
        names = ("mean", "var", "count", self._of_rows)
        state = dict(zip(names, self._normalizer.state(), strict=True))
        return {**state, "update_running_mean": self.update_running_mean}

    def _restore(self, state: dict[str, Any]) -> None:
        self._normalizer.set_state(
            state["mean"], state["var"], state["count"], state[self._of_rows]
        )
        self.update_running_mean = state["update_running_mean"]


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
        env: A vector environment whose observations are one array of numbers.
        epsilon: A number above 0, added to the variance.

    Raises:
        TypeError: The observation space is not a ``Box``.
        ValueError: ``epsilon`` is not above 0.
    """

    _normalizer: ObservationNormalizer
    _of_rows = "shown"

    def __init__(self, env: VectorEnv[Any, Any, Any], epsilon: float = 1e-8) -> None:
        """Checks the space; steps nothing."""
        self.epsilon = as_positive("epsilon", epsilon)
        super().__init__(env)
        space = env.single_observation_space
        if not isinstance(space, Box):
            raise TypeError(
                f"only a Box of numbers can be normalized, got the observation space {space}: "
                "choose with FilterObservation, or flatten with FlattenObservation."
            )
        self._space_before = space
        self._set_observation_space(Box(-np.inf, np.inf, space.shape, np.float32))
        self._normalizer = ObservationNormalizer(
            env.num_envs, space.shape, self.epsilon, self._source.autoreset_mode.value
        )

    @property
    def obs_rms(self) -> RunningMoments:
        """Mean, variance and count of the observations so far, as copies."""
        mean, var, count, _ = self._normalizer.state()
        return RunningMoments(mean, var, count)

    def transform(self, batch: Batch) -> None:
        """Counts new observations, and normalizes all."""
        ends, finals = batch.ended(self._space_before, self._source.autoreset_mode)
        last = batch.observations[:0] if finals is None else finals.observations
        batch.observations, last = self._normalizer.normalize(
            batch.env_index, batch.kinds, batch.observations, ends and (*ends, last)
        )
        if finals is not None:
            finals.observations = last


class NormalizeReward(Normalizer):
    """Divides rewards by the running deviation of the discounted return of all environments.

    For the transitions of a batch the return is ``G = gamma * G + reward``; then all these returns
    are counted, and each reward is emitted as ``reward / sqrt(var + epsilon)``, in ``float64``. At
    the end of an episode, and where a row is reset, ``G`` is 0 again. Rows that are not transitions
    emit 0 and are not counted. A step of an episode of which a step was lost is divided, too, but
    its return is unknown and does not count.

    This differs from Gymnasium 1.4.0, whose vector wrapper drops ``gamma * G`` in the step that
    terminates an episode, and carries ``G`` into the next episode.

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

    Raises:
        ValueError: ``gamma`` is not from 0 to 1, or ``epsilon`` is not above 0.
    """

    _normalizer: RewardNormalizer
    _of_rows = "returns"

    def __init__(
        self, env: VectorEnv[Any, Any, Any], gamma: float = 0.99, epsilon: float = 1e-8
    ) -> None:
        """Checks the arguments; steps nothing."""
        self.gamma = as_fraction("gamma", gamma)
        self.epsilon = as_positive("epsilon", epsilon)
        super().__init__(env)
        self._normalizer = RewardNormalizer(env.num_envs, self.gamma, self.epsilon)

    @property
    def return_rms(self) -> RunningMoments:
        """Mean, variance and count of the discounted returns so far, as copies."""
        mean, var, count, _ = self._normalizer.state()
        return RunningMoments(np.array(mean), np.array(var), count)

    def transform(self, batch: Batch) -> None:
        """Counts the returns of transitions, and divides their rewards."""
        if batch.rewards is None:
            self._normalizer.reset(batch.env_index, batch.kinds)
            return
        batch.rewards = self._normalizer.normalize(
            (batch.env_index, batch.kinds, batch.rewards, batch.terminations, batch.truncations)
        )


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
