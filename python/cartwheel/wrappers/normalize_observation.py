"""Observations with mean 0 and variance 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cartwheel._cartwheel import ObservationNormalizer
from cartwheel.arguments import as_positive
from cartwheel.wrappers.moments import RunningMoments
from cartwheel.wrappers.normalizer import Normalizer

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from cartwheel.wrapping.batch import Batch


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
        envs: A vector environment whose observations are one array of numbers.
        epsilon: What is added to the variance, above 0.

    Raises:
        TypeError: The observation space is not a ``Box``.
        ValueError: ``epsilon`` is not above 0.
    """

    _normalizer: ObservationNormalizer
    _of_rows = "shown"

    def __init__(self, envs: VectorEnv[Any, Any, Any], epsilon: float = 1e-8) -> None:
        """Checks the space; steps nothing."""
        self.epsilon = as_positive("epsilon", epsilon)
        super().__init__(envs)
        space = envs.single_observation_space
        if not isinstance(space, Box):
            raise TypeError(
                f"only a Box of numbers can be normalized, got the observation space {space}: "
                "choose with FilterObservation, or flatten with FlattenObservation."
            )
        self._space_before = space
        self._set_observation_space(Box(-np.inf, np.inf, space.shape, np.float32))
        self._normalizer = ObservationNormalizer(
            envs.num_envs, space.shape, self.epsilon, self._source.mode.value
        )

    @property
    def obs_rms(self) -> RunningMoments:
        """Mean, variance and count of the observations so far, as copies."""
        mean, var, count, _ = self._normalizer.state()
        return RunningMoments(mean, var, count)

    def _transform(self, batch: Batch) -> None:
        ends, finals = batch.ended(self._space_before, self._source.mode)
        last = batch.observations[:0] if finals is None else finals.observations
        batch.observations, last = self._normalizer.normalize(
            batch.rows, batch.kinds, batch.observations, ends and (*ends, last)
        )
        if finals is not None:
            finals.observations = last
