"""What one rollout hands on to the next: the frame that they have in common."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel import returns as estimators

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.rollout import Rollout


@dataclasses.dataclass(frozen=True)
class Carry:
    """What a step left behind, ``[N]`` each; after a reset nothing.

    Attributes:
        rewards: Rewards of that step.
        terminated: Its flags.
        truncated: Its flags.
        is_first: Whether the observation after it begins an episode.
        returns: Sum of the rewards of the episode up to it; of one that it ended, all of them.
        lengths: Steps of the episode up to it, ``int64``.
    """

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whose episode that step ended, ``[N]``."""
        return self.terminated | self.truncated

    @classmethod
    def after_reset(cls, num_envs: int) -> Carry:
        """Every environment shows the first observation of an episode."""
        zeros, nobody = np.zeros(num_envs), np.zeros(num_envs, np.bool_)
        return cls(
            rewards=zeros,
            terminated=nobody,
            truncated=nobody,
            is_first=~nobody,
            returns=zeros,
            lengths=np.zeros(num_envs, np.int64),
        )

    @classmethod
    def after(cls, rollout: Rollout) -> Carry:
        """Of the last step of a rollout that was collected by steps."""
        before, next_step = rollout.carry, rollout.mode == AutoresetMode.NEXT_STEP
        num_steps, num_envs = rollout.rewards.shape
        over = rollout.terminated | rollout.truncated
        # The last end of each environment before the last step: what follows is one episode.
        ends = np.flatnonzero(over[:-1])
        last = np.where(before.done & next_step, -1, -2 if next_step else -1)
        last[ends % num_envs] = ends // num_envs  # in the order of time, so the last one stays
        continued = last == (-2 if next_step else -1)
        start = np.minimum(last + (2 if next_step else 1), num_steps - 1)
        start[continued] = 0
        goes_on = continued & ~before.is_first
        sums = estimators.discounted(
            rollout.rewards, rollout.terminated, rollout.truncated, valid=rollout.valid, gamma=1.0
        )
        rows = np.arange(num_envs)
        # A row that only resets is no step of any episode; its sum is 0 by itself.
        steps = np.where(rollout.valid[start, rows], num_steps - start, 0)
        return cls(
            rewards=rollout.rewards[-1].copy(),
            terminated=rollout.terminated[-1].copy(),
            truncated=rollout.truncated[-1].copy(),
            is_first=rollout.is_first[-1].copy(),
            returns=sums[start, rows] + np.where(goes_on, before.returns, 0.0),
            lengths=steps + np.where(goes_on, before.lengths, 0),
        )
