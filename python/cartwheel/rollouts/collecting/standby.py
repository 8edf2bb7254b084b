"""Spare environments, which are reset before a row needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cartwheel.arguments import as_integer
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Resets(NamedTuple):
    """What the ends of episodes lead to.

    Attributes:
        envs: Environments to reset,
        seeds: each with its seed.
        rows: Rows that can go on at once,
        shown: each with its first observation.
    """

    envs: list[int]
    seeds: list[int]
    rows: list[int]
    shown: list[Any]

    def observations(self) -> Any:
        """The first observations as a batch."""
        return nested.concat(self.shown)


class Standby:
    """Which environment plays which row, and which is reset for whose next episode.

    Episode ``k`` of row ``n`` is reset with a seed that depends on ``seed``, ``n`` and ``k`` only.
    So no result tells which environment played.

    Args:
        num_envs: Environments in all; the last ``standby`` of them are spares at first.
        standby: Number of spares.
    """

    def __init__(self, num_envs: int, standby: int) -> None:
        """Begins nothing yet; :meth:`begin` comes first."""
        self.num_rows = num_envs - standby
        self._entropy: Any = np.random.SeedSequence().entropy
        self._num_envs = num_envs
        #: The number of the present episode of each row.
        self._episode = np.full(self.num_rows, -1)

    def begin(self, seed: Any) -> list[int]:
        """Every row begins an episode; spares are for the next ones of the first rows.

        Args:
            seed: An integer begins all rows anew, with episode 0; with ``None``, episodes that no
                row has begun yet follow.

        Returns:
            One seed for each environment, for the reset of all.

        Raises:
            ValueError: The seed is neither.
        """
        every, rows = np.arange(self._num_envs), self.num_rows
        if seed is not None:
            self._entropy = as_integer("seed", seed, 0)
            self._episode[:] = -1
        # A spare may have begun the episode after the highest.
        self._episode[:] = self._episode.max() + (1 if self._episode.max() < 0 else 2)
        self.env_of = every[:rows].copy()
        self.row_of = np.where(every < rows, every, -1)
        #: Steps of the present episode of each row.
        self.lengths = np.zeros(rows, np.int64)
        #: The environment that is reset for the row's next episode; -1: none.
        self._spare = np.full(rows, -1)
        spares = every[rows : 2 * rows]
        self._spare[: len(spares)] = spares
        #: First observations of spares, by environment.
        self._kept: dict[int, Any] = {}
        self.spares = every[rows:]
        begun = self._episode[0]
        return [self.seed(env % rows, begun + env // rows) for env in every.tolist()]

    def seed(self, row: int, episode: int | np.int64) -> int:
        """The seed of an episode: the first word of a ``SeedSequence`` of the three numbers."""
        sequence = np.random.SeedSequence((self._entropy, row, int(episode)))
        return int(sequence.generate_state(1)[0])

    def keep(self, envs: NDArray[np.int64], observations: Any) -> None:
        """Spares were reset and show these observations."""
        for place, env in enumerate(envs.tolist()):
            one = nested.at(observations, slice(place, place + 1))
            self._kept[env] = nested.apply(np.copy, one)

    def replace(self, rows: NDArray[np.int64]) -> Resets:
        """Lets the spares of rows play whose episodes are over; plans the resets of the others."""
        resets = Resets([], [], [], [])
        free = []
        for row in rows.tolist():
            self._episode[row] += 1
            self.lengths[row] = 0
            env, spare = int(self.env_of[row]), int(self._spare[row])
            if spare < 0:
                self._plan(resets, env, row, int(self._episode[row]))
                continue
            self.env_of[row], self.row_of[spare], self.row_of[env] = spare, row, -1
            self._spare[row] = -1
            free.append(env)
            if spare in self._kept:
                resets.rows.append(row)
                resets.shown.append(self._kept.pop(spare))
        for env in free:
            without = np.flatnonzero(self._spare < 0)
            # The longest episode will probably be over next.
            row = int(without[self.lengths[without].argmax()])
            self._spare[row] = env
            self._plan(resets, env, row, int(self._episode[row]) + 1)
        return resets

    def _plan(self, resets: Resets, env: int, row: int, episode: int) -> None:
        resets.envs.append(env)
        resets.seeds.append(self.seed(row, episode))
