"""Where the present episodes of all environments come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Origins:
    """Seeds, options and numbers of the present episodes.

    An environment that was given a seed plays one episode after the other from it. So an episode
    can be played again by the seed of its row and its number since then.
    """

    def __init__(self, num_envs: int) -> None:
        """No environment was reset yet."""
        self._row_seeds = np.full(num_envs, -1, np.int64)
        self._episode_seeds = np.full(num_envs, -1, np.int64)
        self._numbers = np.full(num_envs, -1, np.int64)
        self._options: dict[int, dict[str, Any]] = {}

    def begin(
        self,
        rows: NDArray[np.int64],
        seeds: NDArray[np.int64] | None,
        options: dict[int, dict[str, Any]] | None,
    ) -> None:
        """Episodes begin.

        Args:
            rows: The environments.
            seeds: The seed that each was given, or -1.
            options: Those that were given any, by row.
        """
        self._numbers[rows] += 1
        self._episode_seeds[rows] = -1
        if seeds is not None:
            given = seeds >= 0
            at = rows[given]
            self._numbers[at] = 0
            self._row_seeds[at] = self._episode_seeds[at] = seeds[given]
        if self._options or options:
            for row in rows.tolist():
                self._options.pop(row, None)
                if options and row in options:
                    self._options[row] = options[row]

    def forget(self, rows: NDArray[np.int64]) -> None:
        """These environments were replaced, or continue from states: their seed is unknown."""
        self._row_seeds[rows] = self._numbers[rows] = -1

    def about(self, row: int) -> dict[str, Any]:
        """Returns what is known of the present episode of an environment."""
        episode_seed, row_seed = (
            None if seeds[row] < 0 else int(seeds[row])
            for seeds in (self._episode_seeds, self._row_seeds)
        )
        how: dict[str, Any] = {} if episode_seed is None else {"seed": episode_seed}
        if row in self._options:
            how["options"] = self._options[row]
        return {
            "episode_seed": episode_seed,
            "row_seed": row_seed,
            "episode_in_row": int(self._numbers[row]),
            "reset_kwargs": how,
        }
