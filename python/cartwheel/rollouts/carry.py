"""What one rollout hands on to the next: the frame that they have in common."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.vector import AutoresetMode

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
        before, num_steps = rollout.carry, rollout.num_steps
        # What follows the last end before the last step is one episode. Numbers as small as steps
        # are compared faster as `int16`, and this is done for every rollout.
        steps = np.arange(num_steps, dtype=np.int16 if num_steps < 2**15 else np.int64)[:, None]
        over = rollout.terminated[:-1] | rollout.truncated[:-1]
        last = np.where(over, steps[:-1], -1).max(axis=0, initial=-1)
        first = last + 1
        if rollout.mode == AutoresetMode.NEXT_STEP:  # after a row that only resets
            first += (last >= 0) | ~rollout.valid[0]
        goes_on = (first == 0) & ~before.is_first
        sums = np.where(steps >= first, rollout.rewards, 0.0).sum(axis=0)
        return cls(
            rewards=rollout.rewards[-1].copy(),
            terminated=rollout.terminated[-1].copy(),
            truncated=rollout.truncated[-1].copy(),
            is_first=rollout.is_first[-1].copy(),
            returns=sums + np.where(goes_on, before.returns, 0.0),
            lengths=num_steps - first.astype(np.int64) + np.where(goes_on, before.lengths, 0),
        )
