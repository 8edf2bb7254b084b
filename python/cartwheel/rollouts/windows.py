"""Stretches of a rollout along time, for recurrent policies and models of sequences."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.rollouts.episodes import Episodes
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


@dataclasses.dataclass(frozen=True)
class Windows:
    """``W`` stretches of ``L`` rows, copies; arrays ``[L, W, …]`` unless it says otherwise.

    Where a window is shorter than ``L``, its last row is repeated, and ``valid`` and ``is_first``
    are false.

    Attributes:
        observations: What was acted on.
        actions: The actions.
        rewards: ``float64``.
        terminated: Flags.
        truncated: Flags.
        valid: Which rows are transitions: leave the others out of losses and statistics.
        is_first: Before which rows the state of a recurrent policy is set to zero.
        starts: Row of the rollout that each begins in, ``[W]``.
        env_index: Its environment, ``[W]``.
        lengths: How many of its rows are not repeated, ``[W]``.
        extras: The extras of the rollout, by name; ``windows["advantages"]`` is short for one of
            them. A recurrent state that the policy gave as an extra is at row 0 what the window
            begins with.
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
        """How many windows there are."""
        return len(self.starts)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The extra of this name."""
        return self.extras[name]


@dataclasses.dataclass(frozen=True)
class Places:
    """Where windows lie, ``[W]`` each: first row, environment, number of rows."""

    starts: NDArray[np.int64]
    env_index: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> Places:
        """Some of them."""
        return Places(self.starts[index], self.env_index[index], self.lengths[index])

    @classmethod
    def of(cls, rollout: Record, length: int, stride: int, *, stop_at_done: bool) -> Places:
        """Those of a whole rollout."""
        num_steps, num_envs = rollout.valid.shape
        if stop_at_done:
            episodes = Episodes.of(rollout)
            first, stop, rows = episodes.starts, episodes.stops, episodes.env_index
        else:
            first, stop = np.zeros(num_envs, np.int64), np.full(num_envs, num_steps)
            rows = np.arange(num_envs)
        counts = -((first - stop) // stride)
        place = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        starts = np.repeat(first, counts) + stride * place
        lengths = np.minimum(length, np.repeat(stop, counts) - starts)
        return cls(starts, np.repeat(rows, counts), lengths)

    def windows(self, rollout: Record, length: int) -> Windows:
        """What a rollout holds there."""
        offsets = np.arange(length)[:, None]
        steps = self.starts + np.minimum(offsets, self.lengths - 1)
        index = (steps, np.broadcast_to(self.env_index, steps.shape))
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
            env_index=self.env_index,
            lengths=self.lengths,
            extras=nested.at(rollout.checked_extras(), index),
        )
