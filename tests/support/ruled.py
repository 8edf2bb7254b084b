"""Limits, ignored terminations, repeated actions and staggered rows, by loops over single rows."""

import numpy as np
from gymnasium.vector import VectorEnv

from tests.support.oracle import D, N, S, flags

_BITS = 2**64 - 1


def begins_at(seed, limit):
    """The number of steps that a staggered row with this seed counts as made, by SplitMix64."""
    words = []
    while seed:
        words.append(seed & _BITS)
        seed >>= 64
    mixed = 0
    for word in [0, *words]:
        mixed = (mixed + word + 0x9E3779B97F4A7C15) & _BITS
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _BITS
        mixed ^= mixed >> 31
    return mixed * limit // 2**64


class RuledOracle:
    """A vector environment with these rules, from Gymnasium's single environments.

    A row that is over in ``DISABLED`` is frozen.
    """

    def __init__(
        self,
        env_fn,
        num_envs,
        mode,
        *,
        max_episode_steps=None,
        ignore_terminations=False,
        action_repeat=1,
        staggered_reset=False,
    ):
        self.envs = [env_fn() for _ in range(num_envs)]
        self.mode = mode
        self.limit = max_episode_steps
        self.ignores = ignore_terminations
        self.repeat = action_repeat
        self.staggers = staggered_reset
        self.shown = [None] * num_envs
        self.over = [(False, False)] * num_envs
        self.elapsed = [0] * num_envs
        #: How many terminations were ignored, and how many steps followed them.
        self.ignored = 0

    def reset(self, *, seed=None, mask=None):
        batch = _Batch(len(self.envs))
        for row in range(len(self.envs)):
            if mask is None or mask[row]:
                own = None if seed is None else seed + row
                batch.add(row, self._begin(row, own))
                if self.staggers and mask is None:
                    self.elapsed[row] = begins_at(own, self.limit)
        return self._observations(), batch.infos

    def step(self, actions, rows=None):
        """Steps these rows; the arrays have all rows."""
        batch = _Batch(len(self.envs))
        for row in range(len(self.envs)) if rows is None else rows:
            if any(self.over[row]) and self.mode is N:
                batch.add(row, self._begin(row, None))
            elif any(self.over[row]):
                assert self.mode is D
            else:
                self._advance(row, actions[row], batch)
        terminations, truncations = (flags(*[over[at] for over in self.over]) for at in (0, 1))
        for row in batch.ended:
            terminations[row], truncations[row] = batch.ended[row]
        return self._observations(), batch.rewards, terminations, truncations, batch.infos

    def _begin(self, row, seed):
        self.shown[row], info = self.envs[row].reset(seed=seed)
        self.over[row], self.elapsed[row] = (False, False), 0
        return info

    def _advance(self, row, action, batch):
        for _ in range(self.repeat):
            self.shown[row], reward, terminated, truncated, info = self.envs[row].step(action)
            batch.rewards[row] += reward
            self.elapsed[row] += 1
            truncated = truncated or self.elapsed[row] == self.limit
            self.ignored += self.ignores and terminated
            self.over[row] = (terminated and not self.ignores, truncated)
            if any(self.over[row]):
                break
        if any(self.over[row]) and self.mode is S:
            batch.ended[row] = self.over[row]
            batch.add(row, {"final_obs": self.shown[row], "final_info": info})
            info = self._begin(row, None)
        batch.add(row, info)

    def _observations(self):
        if isinstance(self.shown[0], tuple):
            return tuple(np.array(leaf) for leaf in zip(*self.shown, strict=True))
        return np.array(self.shown)


class _Batch:
    def __init__(self, num_envs):
        self.rewards, self.infos, self.ended = np.zeros(num_envs), {}, {}
        self._batching = VectorEnv()
        self._batching.num_envs = num_envs

    def add(self, row, info):
        self.infos = self._batching._add_info(self.infos, info, row)
