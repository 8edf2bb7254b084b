"""The last observations of episodes, where the next row of a rollout shows another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array

from cartwheel.rollouts import nested

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


class Finals:
    """Final observations in the order of time, as they come."""

    def __init__(self, space: Space[Any]) -> None:
        """``space`` is that of a single environment."""
        self.space = space
        self._rows: list[NDArray[np.int64]] = []
        self._observations: list[Any] = []
        self._infos: list[tuple[int, NDArray[np.bool_], Any]] = []

    def add(self, step: int, envs: NDArray[np.intp], observations: Any) -> None:
        """Keeps ``observations``, one for each of ``envs``, that ``step`` came to."""
        index = np.empty((len(envs), 2), np.int64)
        index[:, 0], index[:, 1] = step, envs
        self._rows.append(index)
        self._observations.append(observations)

    def add_infos(self, step: int, infos: dict[str, Any]) -> None:
        """Keeps those of ``infos``, if there are any, as they are; :meth:`joined` batches them."""
        if "final_obs" in infos:
            self._infos.append((step, infos["_final_obs"], infos["final_obs"]))

    def of_infos(self, infos: dict[str, Any], envs: NDArray[np.intp]) -> Any:
        """The batch of those of ``infos`` for ``envs``.

        Raises:
            RuntimeError: There is none.
        """
        if "final_obs" not in infos:
            raise RuntimeError(
                f"environments {envs.tolist()} ended an episode in the mode SAME_STEP, but `infos` "
                "have no `final_obs`: does a wrapper remove it?"
            )
        return self._batch([infos["final_obs"][env] for env in envs.tolist()])

    def joined(self) -> tuple[Any, NDArray[np.int64]]:
        """All final observations, ``[K, *shape]``, and their steps and environments, ``[K, 2]``."""
        if self._infos:
            steps, masks, batches = zip(*self._infos, strict=True)
            places, envs = np.nonzero(np.array(masks))
            pairs = zip(places.tolist(), envs.tolist(), strict=True)
            finals = self._batch([batches[place][env] for place, env in pairs])
            return finals, np.stack([np.array(steps)[places], envs], axis=1)
        if not self._rows:
            return self._batch([]), np.empty((0, 2), np.int64)
        arrays = nested.apply(lambda *parts: np.concatenate(parts), *self._observations)
        return arrays, np.concatenate(self._rows)

    def _batch(self, observations: list[Any]) -> Any:
        arrays: Any = create_empty_array(self.space, len(observations), fn=np.empty)
        return concatenate(self.space, observations, arrays) if observations else arrays
