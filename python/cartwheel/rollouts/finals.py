"""Final observations of episodes that the next row of a rollout does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.spaces import nested
from cartwheel.vector.infos import is_dense

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


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
    _require(step, envs, infos["_final_obs"] if "final_obs" in infos else np.zeros_like(envs))
    found: list[Any] = infos["final_obs"][envs].tolist()
    return found
