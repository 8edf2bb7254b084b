"""Environments that say in every observation where they are, and the rules of their rollouts.

An observation has seven numbers: the environment, which object it is (a number of its own for
each), the episode in this object, the length of the episode, the seed of its reset, the step
in the episode, and the last action. So a step that is lost, doubled or swapped shows, whatever
collected it.
"""

import random

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

#: The action that raises.
RAISE = 999
ENV, LIFE, EPISODE, LENGTH, SEED, STEP, ACTION = range(7)


class CountingEnv(gym.Env):
    """Episodes of 1 to 12 steps; those of even length terminate, the others are truncated."""

    action_space = Discrete(RAISE + 1)
    observation_space = Box(-np.inf, np.inf, (7,), np.float64)

    def __init__(self, number):
        self.life = random.SystemRandom().getrandbits(50)
        self.number, self.episode, self.seed = number, 0, -1

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        if seed is not None:
            self.seed = seed
        self.episode, self.time = self.episode + 1, 0
        self.length = 1 + (self.number * 5 + self.episode * 7 + self.seed % 11) % 12
        return self._observation(-1), {}

    def step(self, action):
        if action == RAISE:
            raise ValueError(f"environment {self.number} got the action that raises")
        self.time += 1
        over, even = self.time == self.length, self.length % 2 == 0
        observation = self._observation(action)
        return observation, reward_of(observation), over and even, over and not even, {}

    def _observation(self, action):
        values = self.number, self.life, self.episode, self.length, self.seed, self.time, action
        return np.array(values, np.float64)


def reward_of(observation):
    """The reward of the step that led to an observation."""
    return observation[..., ENV] + 100 * observation[..., STEP] + 1e4 * observation[..., ACTION]


class Rules:
    """Checks rollouts of :class:`CountingEnv` one after another; raises at the first difference.

    Args:
        mode: The autoreset mode.
        rows: Columns of the collector's environments, without spares.
        spares: Whether spares play, so that seeds identify episodes instead of environments.
        faults: Whether environments are replaced, so that steps may fail.
    """

    def __init__(self, mode, rows, *, spares=False, faults=False):
        self.mode, self.spares, self.faults = mode, spares, faults
        self.shown, self.over = [None] * rows, np.zeros(rows, bool)
        self.after_reset = np.ones(rows, bool)
        self.interrupted = np.zeros(rows, bool)
        self.base, self.seeds = None, [{} for _ in range(rows)]
        self.counted = {"steps": 0, "failed steps": 0, "lives lost in a reset": 0}
        self.counted["lives lost between rollouts"] = 0

    def reset(self, seed=None):
        """Every row shows a first observation next."""
        self.after_reset[:], self.interrupted[:] = True, False
        if seed is not None:
            self.base, self.seeds = seed, [{} for _ in self.seeds]

    def interrupt(self):
        """A Ctrl-C came: a rollout may be lost, or all of them, after which comes a reset."""
        self.interrupted[:], self.after_reset[:] = True, False

    def check(self, rollout):
        """Checks a rollout."""
        rows = rollout.env_index
        seen, shape = rollout.observations, rollout.valid.shape
        before, following = seen[:-1], seen[1:]
        self._check_beginnings(rollout, rows)
        over = rollout.terminated | rollout.truncated
        resetting = np.zeros(shape, bool)
        if self.mode == "next_step":
            resetting[0], resetting[1:] = self.over[rows], over[:-1]
        valid = rollout.valid
        same("valid", valid & resetting, False)
        failed = ~valid & ~resetting
        self._check_failed(rollout, failed)

        after = following.copy()
        if self.mode != "next_step":
            finals = np.zeros(shape, bool)
            finals[tuple(rollout.final_index.T)] = True
            same("final_index", finals[valid], over[valid])
            after[tuple(rollout.final_index.T)] = rollout.final_observations
        one, two = before[valid], after[valid]
        for name, part in (("env", ENV), ("life", LIFE), ("episode", EPISODE), ("seed", SEED)):
            same(f"{name} of a step", two[:, part], one[:, part])
        same("step", two[:, STEP], one[:, STEP] + 1)
        same("action", two[:, ACTION], rollout.actions[valid])
        same("reward", rollout.rewards[valid], reward_of(two))
        ended, even = two[:, STEP] == two[:, LENGTH], two[:, LENGTH] % 2 == 0
        same("terminated", rollout.terminated[valid], ended & even)
        same("truncated", rollout.truncated[valid], ended & ~even)
        same("is_first", rollout.is_first[:-1][valid], one[:, STEP] == 0)
        for name, extra in rollout.extras.items():
            if name == "shown":
                same("the extra `shown`", extra[valid], one)

        begun = resetting if self.mode == "next_step" else over
        self._check_first(before[begun], following[begun], failed[begun])
        if self.spares:
            self._check_seeds(seen, over, rows)
        self.shown_after(rows, seen[-1], over[-1])
        self.counted["steps"] += valid.size

    def _check_beginnings(self, rollout, rows):
        """A column begins where the last one of its row ended."""
        for place, row in enumerate(rows.tolist()):
            first, shown = rollout.observations[0, place], self.shown[row]
            if not self.spares:
                same("env of a row", first[ENV], row)
            if self.after_reset[row] or (self.interrupted[row] and rollout.is_first[0, place]):
                if self.after_reset[row]:
                    same("is_first after a reset", rollout.is_first[0, place], True)
                self.over[row] = rollout.carry.done[place]
            elif self.interrupted[row]:
                self.over[row] = rollout.carry.done[place]
                if shown is not None and first[LIFE] == shown[LIFE]:
                    known = first[EPISODE], first[STEP]
                    same("whether time goes on", known >= (shown[EPISODE], shown[STEP]), True)
            elif self.faults and first[LIFE] != shown[LIFE]:
                # A worker died between two steps. The next step only reports it.
                same("step of a new life", first[STEP], 0)
                same("valid, after a death", rollout.valid[0, place], False)
                self.counted["lives lost between rollouts"] += 1
            else:
                same(f"beginning of a column of row {row}", first, shown)
        self.after_reset[rows] = self.interrupted[rows] = False

    def _check_failed(self, rollout, failed):
        self.counted["failed steps"] += int(failed.sum())
        if not self.faults:
            same("whether steps failed", failed.any(), False)
        same("truncated, of failed steps", rollout.truncated[failed], True)

    def _check_first(self, before, first, failed):
        """Checks the first observations after resets."""
        same("step after a reset", first[:, STEP], 0)
        same("action after a reset", first[:, ACTION], -1)
        if self.spares:
            return
        lost = before[:, LIFE] != first[:, LIFE]
        self.counted["lives lost in a reset"] += int((lost & ~failed).sum())
        if not self.faults:
            same("whether lives were lost", lost.any(), False)
        same("env after a reset", first[:, ENV], before[:, ENV])
        kept = ~lost & ~failed
        same("episode after a reset", first[kept, EPISODE], before[kept, EPISODE] + 1)

    def _check_seeds(self, seen, over, rows):
        """Episode ``k`` of a column has the seed of ``k``, and ``k + 1`` comes after it."""
        for place, row in enumerate(rows.tolist()):
            numbers = [self._number(row, int(seed)) for seed in seen[:, place, SEED]]
            same(f"numbers of episodes of row {row}", np.diff(numbers), over[:, place])

    def _number(self, row, seed):
        known = self.seeds[row]
        while seed not in known and len(known) < 5000:
            sequence = np.random.SeedSequence((self.base, row, len(known)))
            known[int(sequence.generate_state(1)[0])] = len(known)
        if seed not in known:
            raise AssertionError(f"row {row} plays an episode of no number: its seed is {seed}")
        return known[seed]

    def shown_after(self, rows, observations, over):
        """Remembers how columns ended."""
        for place, row in enumerate(rows.tolist()):
            self.shown[row] = observations[place].copy()
        self.over[rows] = over


def same(what, got, expected):
    """Raises if two arrays differ."""
    if not np.array_equal(got, np.broadcast_to(expected, np.shape(got))):
        raise AssertionError(f"{what}: got {got!r}, expected {expected!r}")
