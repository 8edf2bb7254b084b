"""Collecting rollouts of native CartPole-v1 with ``Collector``, against a loop written by hand.

The loop is typical of trainers: it allocates its arrays once, writes every batch into them, keeps
the final observations and the mask of valid transitions that its mode needs, and computes the
returns of the last 100 episodes for the learning curve. ``Rollout.episodes`` gives the collector's
returns. The policy costs nothing in both cases: its actions are drawn in advance. A step of the
table is one row of a rollout of 128 steps.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.runners import Repeated
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.literals import ModeName

STEPS = 128
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
BOUND = 1 / 1.05  # the collector takes at most 5 % longer


Policy = Callable[[Any], Any]


def drawn_actions(num_envs: int) -> Policy:
    """A policy that costs nothing: it repeats some batches of actions forever."""
    batches = itertools.cycle(np.random.default_rng(0).integers(0, 2, (64, num_envs)))
    return lambda _: next(batches)


class Loop:
    """A program without ``Collector``."""

    def __init__(self, envs: cartwheel.NativeVectorEnv, policy: Policy, mode: ModeName) -> None:
        """Allocates the arrays and resets the environments."""
        shape = (STEPS, envs.num_envs)
        self.envs, self.policy, self.mode = envs, policy, mode
        self.observations = np.empty((STEPS + 1, envs.num_envs, 4), np.float32)
        self.actions, self.rewards = np.empty(shape, np.int64), np.empty(shape)
        self.terminated, self.truncated, self.valid = (np.ones(shape, np.bool_) for _ in range(3))
        self.resetting = np.zeros(envs.num_envs, np.bool_)
        self.shown, _ = envs.reset(seed=1)
        self.running = np.zeros(envs.num_envs)
        self.returns: collections.deque[float] = collections.deque(maxlen=100)

    def collect(self) -> None:
        """Fills the arrays once; the next call overwrites them."""
        finals: list[Any] = []
        for t in range(STEPS):
            actions = self.policy(self.shown)
            self.observations[t], self.actions[t] = self.shown, actions
            observations, rewards, terminated, truncated, infos = self.envs.step(actions)
            self.rewards[t], self.terminated[t], self.truncated[t] = rewards, terminated, truncated
            over = terminated | truncated
            if self.mode == "next_step":
                np.logical_not(self.resetting, out=self.valid[t])
                self.resetting = over
            self.running += rewards
            if over.any():
                rows = np.flatnonzero(over)
                self.returns.extend(self.running[rows])
                self.running[rows] = 0.0
                if self.mode == "same_step":
                    finals.append((t, rows, np.stack(list(infos["final_obs"][rows]))))
                elif self.mode == "disabled":
                    finals.append((t, rows, observations[rows]))
                    observations, _ = self.envs.reset(options={"reset_mask": over})
            self.shown = observations
        self.observations[STEPS] = self.shown
        self.finals = finals


class Collected:
    """A program with ``Collector``."""

    def __init__(self, envs: cartwheel.NativeVectorEnv, policy: Policy) -> None:
        """Allocates nothing."""
        self.collector = cartwheel.Collector(envs, policy, STEPS, seed=1)
        self.returns: collections.deque[float] = collections.deque(maxlen=100)

    def collect(self) -> None:
        """Collects a rollout; the one before is dropped when it is complete."""
        self.rollout = self.collector.collect()
        self.returns.extend(self.rollout.episodes(complete_only=True).returns)


def build(mode: ModeName, env_fns: Sequence[Any], *, by_hand: bool) -> Repeated:
    """Creates the environments and the collector or loop."""
    envs = cartwheel.NativeVectorEnv("CartPole-v1", len(env_fns), autoreset_mode=mode)
    policy = drawn_actions(len(env_fns))
    collect = (Loop(envs, policy, mode) if by_hand else Collected(envs, policy)).collect
    return Repeated(collect, STEPS * len(env_fns), envs.close)


def claims() -> list[Claim]:
    """One claim for each mode."""
    return [
        Claim(
            Contender(f"collector {mode}"[:17], functools.partial(build, mode, by_hand=False)),
            Contender(f"loop {mode}", functools.partial(build, mode, by_hand=True)),
            BOUND,
        )
        for mode in MODES
    ]


if __name__ == "__main__":
    check(f"rollouts of {STEPS} steps", no_env, {num_envs: claims() for num_envs in (64, 1024)})
