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
        self._batches: list[Any] = []
        self._infos: dict[int, Any] = {}

    def add(self, observations: Any) -> None:
        """Keeps a batch of them."""
        self._batches.append(observations)

    def add_infos(self, step: int, infos: dict[str, Any]) -> None:
        """Keeps those of ``infos``, if there are any, as they are; :meth:`joined` batches them."""
        if "final_obs" in infos:
            self._infos[step] = infos["final_obs"]

    def of_infos(self, step: int, infos: dict[str, Any], envs: NDArray[np.intp]) -> Any:
        """The batch of those of ``infos`` for ``envs``.

        Raises:
            RuntimeError: There is none.
        """
        return self._batch({step: infos.get("final_obs")}, [(step, env) for env in envs.tolist()])

    def joined(self, replaced: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        """All of them, ``[K, *shape]``, with their steps and environments, ``[K, 2]``.

        Args:
            replaced: For which rows there is one, ``[T, N]``.

        Raises:
            RuntimeError: One is missing.
        """
        flat = np.flatnonzero(replaced)
        index = np.stack(np.divmod(flat, replaced.shape[1]), axis=1)
        if self._batches:
            return nested.apply(lambda *parts: np.concatenate(parts), *self._batches), index
        return self._batch(self._infos, index.tolist()), index

    def _batch(self, finals: dict[int, Any], rows: list[Any]) -> Any:
        """What ``finals`` hold by step, each of them an array of one object an environment."""
        arrays: Any = create_empty_array(self.space, len(rows), fn=np.empty)
        if not rows:
            return arrays
        for step, env in rows:
            if finals.get(step) is None or finals[step][env] is None:
                raise RuntimeError(
                    f"environment {env} ended an episode at step {step} in the mode SAME_STEP, but "
                    "`infos` had no `final_obs` of it: does a wrapper remove it?"
                )
        return concatenate(self.space, [finals[step][env] for step, env in rows], arrays)
