"""Applies a function to observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.spaces import nested
from cartwheel.wrappers.observation_wrapper import ObservationWrapper
from cartwheel.wrappers.single_space import single_space
from cartwheel.wrappers.space_fit import Fit
from cartwheel.wrapping.wrapper import rows_of_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv


class TransformObservation(ObservationWrapper):
    """Applies a function to observations, batch by batch.

    Unlike Gymnasium's vector wrapper it works in every autoreset mode: in ``SAME_STEP`` the final
    observations are transformed too, in one more call.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import TransformObservation
        >>> envs = TransformObservation(
        ...     cartwheel.NativeVectorEnv("CartPole-v1", 2), lambda observations: observations * 2
        ... )
        >>> observations, infos = envs.reset(seed=1)
        >>> envs.close()

    Args:
        envs: A vector environment.
        func: Called with a batch of observations of **any number of rows**, which it does not write
            into; returns a batch with as many rows, in the form of the new space. The same
            observation gives the same result: rows that are left alone pass through it again.
        observation_space: The new space of a batch.
        single_observation_space: The new space of one environment. By default it is found from
            ``observation_space``; with neither, the space stays what it was.

    Raises:
        ValueError: The spaces contradict each other. From ``reset`` on: the result does not fit the
            space in nesting, dtype, shape or number of rows. (Bounds are not checked.)
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        func: Callable[[Any], Any],
        observation_space: Space[Any] | None = None,
        single_observation_space: Space[Any] | None = None,
    ) -> None:
        """Checks the spaces; calls nothing."""
        super().__init__(envs)
        if not callable(func):
            raise TypeError(f"`func` must be a function of observations, got {type(func)}.")
        self.func = func
        spaces = observation_space, single_observation_space, self._space_before
        single = single_space("observation_space", *spaces, rows_of_batch(envs))
        self._set_observation_space(single)
        self._fit = Fit("observations", single)

    def _observe(self, observations: Any) -> Any:
        result = self.func(observations)
        self._fit.check(result, nested.count(self._space_before, observations))
        return result
