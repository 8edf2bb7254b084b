"""Rewards divided by the deviation of the discounted return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._cartwheel import RewardNormalizer
from cartwheel.arguments import as_fraction, as_positive
from cartwheel.wrappers.moments import RunningMoments
from cartwheel.wrappers.normalizer import Normalizer

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from cartwheel.wrapping.batch import Batch


class NormalizeReward(Normalizer):
    """Divides rewards by the running deviation of the discounted return of all environments.

    For the transitions of a batch the return is ``G = gamma * G + reward``; then all these returns
    are counted, and each reward is emitted as ``reward / sqrt(var + epsilon)``, in ``float64``. At
    the end of an episode, and where a row is reset, ``G`` is 0 again. Rows that are no transition
    emit 0 and count nothing. A step of an episode of which a step was lost is divided, too, but its
    return is unknown and does not count.

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
        envs: A vector environment.
        gamma: The discount, from 0 to 1.
        epsilon: What is added to the variance, above 0.

    Raises:
        ValueError: ``gamma`` is not from 0 to 1, or ``epsilon`` is not above 0.
    """

    _normalizer: RewardNormalizer
    _of_rows = "returns"

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], gamma: float = 0.99, epsilon: float = 1e-8
    ) -> None:
        """Checks the arguments; steps nothing."""
        self.gamma = as_fraction("gamma", gamma)
        self.epsilon = as_positive("epsilon", epsilon)
        super().__init__(envs)
        self._normalizer = RewardNormalizer(envs.num_envs, self.gamma, self.epsilon)

    @property
    def return_rms(self) -> RunningMoments:
        """Mean, variance and count of the discounted returns so far, as copies."""
        mean, var, count, _ = self._normalizer.state()
        return RunningMoments(np.array(mean), np.array(var), count)

    def _transform(self, batch: Batch) -> None:
        if batch.rewards is None:
            self._normalizer.reset(batch.rows, batch.kinds)
            return
        batch.rewards = self._normalizer.normalize(
            (batch.rows, batch.kinds, batch.rewards, batch.terminations, batch.truncations)
        )
