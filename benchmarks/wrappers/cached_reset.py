"""Resets of 1 ms in episodes of 10 steps: states of a ``CachedReset`` against the resets.

A cached reset of an environment in Python unpickles its state. Native CartPole-v1 with episodes of
one step shows what a cached reset costs where the environment's own is nearly free: no bound.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from benchmarks.harness.workloads import Idle, compute, rounds_of
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import VectorRunner, sample_actions
from cartwheel.wrappers import CachedReset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Level(Idle):
    """Computes a level of 8 KiB in each reset, for 1 ms; its episodes have 10 steps."""

    def __init__(self, rounds: int) -> None:
        """Computes ``rounds`` rounds in each reset."""
        super().__init__()
        self.rounds = rounds
        self.level, self.steps = np.zeros(1024), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Computes."""
        result = super().reset(seed=seed, options=options)
        compute(self.rounds)
        self.level, self.steps = self.np_random.random(1024), 0
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Counts."""
        self.steps += 1
        return self.frame, 1.0, self.steps == 10, False, {}

    def get_state(self) -> Any:
        """The level and the steps; the random numbers are never loaded here."""
        return self.level, self.steps

    def set_state(self, state: Any) -> None:
        """Takes them back."""
        self.level, self.steps = state


def contender(name: str, make: Callable[[Sequence[Any]], Any], *, cached: bool) -> Contender:
    """Vector environments with or without the cache."""

    def build(env_fns: Sequence[Any]) -> VectorRunner:
        envs = make(env_fns)
        envs = CachedReset(envs, 64, seed=0) if cached else envs
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    return Contender(name, build)


def inline(env_fns: Sequence[Any]) -> Any:
    """On the calling thread."""
    return cartwheel.VectorEnv(env_fns, executor="inline")


def pole(env_fns: Sequence[Any]) -> Any:
    """Native CartPole-v1 on one thread, with episodes of one step: every second step is a reset."""
    return cartwheel.NativeVectorEnv(
        "CartPole-v1", len(env_fns), max_episode_steps=1, executor="inline"
    )


def claim(make: Callable[[Sequence[Any]], Any], bound: float) -> Claim:
    """With the cache at least so many times as fast as without."""
    both = contender("cached", make, cached=True), contender("own resets", make, cached=False)
    return Claim(*both, bound)


if __name__ == "__main__":
    level = functools.partial(Level, rounds_of(1e-3))
    check("resets of 1 ms, episodes of 10 steps", level, {16: [claim(inline, 10.0)]})
    check("native CartPole-v1 with episodes of one step", no_env, {1024: [claim(pole, 0)]})
