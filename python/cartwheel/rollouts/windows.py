"""Windows of consecutive rows of a rollout, for recurrent policies and sequence models."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.rollouts.episodes import runs
from cartwheel.rollouts.record import one_line
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """``W`` windows of ``L`` consecutive rows; copies of shape ``[L, W, …]`` unless noted.

    If a window has fewer than ``L`` rows, its last row is repeated, and ``valid`` and ``is_first``
    are false there.

    Attributes:
        observations: The policy's observations.
        actions: The actions.
        rewards: ``float64``.
        terminated: Flags.
        truncated: Flags.
        valid: Which rows are transitions: leave the others out of losses and statistics.
        is_first: Which rows begin an episode: set the state of a recurrent policy to zero there.
        starts: The first step of each window in the rollout, ``[W]``.
        env_index: Its environment, ``[W]``.
        lengths: The number of its rows that are not repeated, ``[W]``.
        extras: The extras of the rollout, by name; ``windows["advantages"]`` is one of them. If the
            policy returns its recurrent state as an extra, row 0 has the state at the beginning of
            the window.
    """

    observations: Any
    actions: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    starts: NDArray[np.int64]
    env_index: NDArray[np.int64]
    lengths: NDArray[np.int64]
    extras: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.starts)

    def __repr__(self) -> str:
        """The length and the number of windows, and the names of extras."""
        return one_line("Windows", f"{len(self.rewards)} steps × {len(self)} windows", self.extras)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Returns the extra of this name."""
        return self.extras[name]


@dataclasses.dataclass(frozen=True)
class Places:
    """The places of windows, ``[W]`` each: first step, column, number of rows."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> Places:
        """Returns the places at ``index``."""
        return Places(self.starts[index], self.columns[index], self.lengths[index])

    @classmethod
    def of(cls, rollout: Record, length: int, stride: int, *, stop_at_done: bool) -> Places:
        """Returns the places of all windows of a rollout."""
        num_steps, num_envs = rollout.valid.shape
        if stop_at_done:
            first, rows, stop = runs(rollout)
        else:
            first, stop = np.zeros(num_envs, np.int64), np.full(num_envs, num_steps)
            rows = np.arange(num_envs)
        counts = -((first - stop) // stride)
        place = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        starts = np.repeat(first, counts) + stride * place
        lengths = np.minimum(length, np.repeat(stop, counts) - starts)
        return cls(starts, np.repeat(rows, counts), lengths)

    def windows(self, rollout: Record, length: int) -> Windows:
        """Returns the windows of a rollout at these places."""
        offsets = np.arange(length)[:, None]
        steps = self.starts + np.minimum(offsets, self.lengths - 1)
        index = (steps, np.broadcast_to(self.columns, steps.shape))
        inside = offsets < self.lengths
        return Windows(
            observations=nested.at(rollout.observations, index),
            actions=nested.at(rollout.actions, index),
            rewards=rollout.rewards[index],
            terminated=rollout.terminated[index],
            truncated=rollout.truncated[index],
            valid=rollout.valid[index] & inside,
            is_first=rollout.is_first[index] & inside,
            starts=self.starts,
            env_index=rollout.env_index[self.columns],
            lengths=self.lengths,
            extras=nested.at(rollout.checked_extras(), index),
        )
