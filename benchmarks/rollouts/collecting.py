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
import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cartwheel._internal.literals import ModeName

STEPS = 128
MODES: tuple[ModeName, ...] = ("next_step", "same_step", "disabled")
BOUND = 1 / 1.05  # the collector takes at most 5 % longer


class DrawnActions:
    """A policy that costs nothing."""

    def __init__(self, num_envs: int) -> None:
        """Draws some batches of actions, which are repeated forever."""
        batches = np.random.default_rng(0).integers(0, 2, (64, num_envs))
        self._batches = itertools.cycle(list(batches))

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int64]:  # noqa: ARG002 - a policy's signature
        """The next batch."""
        return next(self._batches)


class Loop:
    """A program without ``Collector``."""

    def __init__(
        self, envs: cartwheel.NativeVectorEnv, policy: DrawnActions, mode: ModeName
    ) -> None:
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

    def collect(self) -> Any:
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
        return finals


class Collected:
    """A program with ``Collector``."""

    def __init__(self, envs: cartwheel.NativeVectorEnv, policy: DrawnActions) -> None:
        """Allocates nothing."""
        self.collector = cartwheel.Collector(envs, policy, STEPS, seed=1)
        self.returns: collections.deque[float] = collections.deque(maxlen=100)

    def collect(self) -> Any:
        """The next rollout."""
        rollout = self.collector.collect()
        self.returns.extend(rollout.episodes(complete_only=True).returns)
        return rollout


class Collects(Protocol):
    """Returns one rollout after another."""

    def collect(self) -> Any:
        """The next rollout."""


class Collecting:
    """One way to collect, repeatedly; a rollout is dropped when the next one is complete."""

    def __init__(self, envs: cartwheel.NativeVectorEnv, source: Collects) -> None:
        """Collects nothing yet."""
        self.envs, self.source, self.note = envs, source, ""
        self._rollout_s = float("inf")  # time of a rollout in the last run

    def run(self, seconds: float) -> float:
        """Collects for about ``seconds``, at least once; returns rows per second."""
        turns = max(1, round(seconds / self._rollout_s))
        start = time.perf_counter()
        for _ in range(turns):
            self.last = self.source.collect()
        self._rollout_s = (time.perf_counter() - start) / turns
        return STEPS * self.envs.num_envs / self._rollout_s

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


def build(mode: ModeName, env_fns: Sequence[Any], *, by_hand: bool) -> Collecting:
    """Creates the environments and the collector or loop."""
    envs = cartwheel.NativeVectorEnv("CartPole-v1", len(env_fns), autoreset_mode=mode)
    policy = DrawnActions(len(env_fns))
    if by_hand:
        return Collecting(envs, Loop(envs, policy, mode))
    return Collecting(envs, Collected(envs, policy))


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
