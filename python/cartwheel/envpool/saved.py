"""States of a pool: it continues in another process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.vector.state_dict import check_array, check_header, check_keys, check_list, new_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel._cartwheel import Pool
    from cartwheel.native.vector_env import NativeVectorEnv
    from cartwheel.vector.vector_env import VectorEnv

#: The counts of episodes in a state, each with an entry for each environment.
_COUNTS = {"elapsed": np.int32, "ended": np.bool_, "fresh": np.bool_}


class SavedPool:
    """The methods of a pool that save and load states."""

    num_envs: int
    _envs: VectorEnv[Any, Any] | NativeVectorEnv[Any, Any]
    _pool: Pool
    _seeds: list[int | None]
    _convert: Callable[[Any], Any] | None

    def state_dict(self) -> dict[str, Any]:
        """Saves the pool, as :meth:`cartwheel.VectorEnv.state_dict` does.

        Raises:
            ValueError: An environment cannot be saved, as those of several players.
            gymnasium.error.AlreadyPendingCallError: Results are outstanding.
        """
        counts = zip(_COUNTS.items(), self._episodes(), strict=True)
        episodes: dict[str, Any] = {
            name: np.array(column, dtype) for (name, dtype), column in counts
        }
        envs, seeds = self._envs.state_dict(), list(self._seeds)
        return new_state("envpool", episodes=episodes, seeds=seeds, envs=envs)

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Continues from a state of :meth:`state_dict`, as in :meth:`cartwheel.VectorEnv`.

        Returns:
            What the environments last showed.

        Raises:
            TypeError: ``state`` is not a dictionary.
            ValueError: It is of another version or of another pool. Nothing has changed.
            gymnasium.error.AlreadyPendingCallError: Results are outstanding.
        """
        check_header(state, "envpool", ("episodes", "seeds", "envs"))
        episodes, num_envs = state["episodes"], self.num_envs
        check_keys("state['episodes']", episodes, tuple(_COUNTS))
        for name, dtype in _COUNTS.items():
            check_array(f"state['episodes'][{name!r}]", episodes[name], (num_envs,), dtype)
        seeds: list[int | None] = state["seeds"]
        check_list("state['seeds']", seeds, num_envs)
        if not all(isinstance(seed, int | None) for seed in seeds):
            raise ValueError(f"`state['seeds']` must be integers or None, got {seeds}")
        before = self._episodes()
        try:
            observations: Any = self._envs.load_state_dict(state["envs"])
        except BaseException:
            with contextlib.suppress(Exception):  # closed or broken
                self._pool.set_episodes(*before)
            raise
        self._pool.set_episodes(*(episodes[name].tolist() for name in _COUNTS))
        self._seeds = list(seeds)
        return observations if self._convert is None else self._convert(observations)

    # What the states of wrappers have of the rows, as of ``SavedRows``

    def _rows(self, *, envs: bool) -> dict[str, Any] | None:
        return self.state_dict() if envs else None

    def _load_rows(self, state: dict[str, Any]) -> Any:
        return None if state["envs"] is None else self.load_state_dict(state["envs"])

    def _episodes(self) -> tuple[list[int], list[bool], list[bool]]:
        episodes = self._pool.episodes()
        assert episodes is not None, "counted from the beginning"
        return episodes
