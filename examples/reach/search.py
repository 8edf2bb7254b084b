"""Evolution strategies in a few lines of NumPy: every row plays with a policy of its own.

A generation perturbs the weights of a linear policy, one perturbation and its opposite for two
rows, and moves the weights toward the perturbations whose episodes had the higher returns.
(Salimans et al. 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Search:
    """Weights of a linear policy ``[4, 2]`` for each of ``num_envs`` rows, and their mean."""

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        """Begins with weights of zero: a robot that does not move."""
        self.mean: NDArray[np.float64] = np.zeros((4, 2))
        self._random = np.random.default_rng(seed)
        self._half = num_envs // 2
        self._noise = self._draw()

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """One action for each row ``[N, 2]``, by the row's own weights."""
        weights = self.mean + 0.3 * self._noise
        return _bounded(np.einsum("ni,nij->nj", observations, weights))

    def best(self, observations: Any) -> NDArray[np.float32]:
        """Actions ``[N, 2]`` of the mean weights."""
        return _bounded(observations @ self.mean)

    def learn(self, returns: NDArray[np.float64]) -> None:
        """Moves the mean by the returns ``[N]`` of the rows, and draws the next perturbations."""
        ranks = np.argsort(np.argsort(returns)) / (len(returns) - 1) - 0.5
        self.mean = self.mean + 8.0 * np.einsum("n,nij->ij", ranks, self._noise) / len(returns)
        self._noise = self._draw()

    def _draw(self) -> NDArray[np.float64]:
        noise = self._random.normal(size=(self._half, 4, 2))
        return np.concatenate([noise, -noise])


def _bounded(actions: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.clip(actions, -1.0, 1.0).astype(np.float32)
