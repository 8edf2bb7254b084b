"""CartPole-v1 in worker processes: the first steps after the caller computed for a while.

A trainer collects, learns, and collects again. While it learns, workers sleep; where they wake
decides how fast the next steps are. The first 0.1 s after a pause of 0.5 s are compared with
0.1 s in the middle of others.
"""

from __future__ import annotations

import functools
import itertools
import time
from typing import TYPE_CHECKING

import gymnasium as gym

import cartwheel
from benchmarks.harness.claim import Claim, check
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn

PAUSE_S, MEASURED_S = 0.5, 0.1
BOUND = 0.8


class AfterAPause:
    """Steps for a short time, again and again, after a pause or after other steps."""

    note = ""

    def __init__(self, env_fns: Sequence[EnvFn], *, pause: bool) -> None:
        """Makes worker processes and resets the environments."""
        self.envs = cartwheel.VectorEnv(env_fns, executor="process")
        self.envs.reset(seed=0)
        self._actions = itertools.cycle(sample_actions(self.envs.action_space))
        self._pause = pause

    def run(self, seconds: float) -> float:
        """Returns environment steps per second, of as many short times as fit into ``seconds``."""
        times = max(1, round(seconds / (PAUSE_S + MEASURED_S)))
        rates = []
        for _ in range(times):
            end = time.perf_counter() + PAUSE_S
            while time.perf_counter() < end:  # the caller computes, or steps
                if not self._pause:
                    self.envs.step(next(self._actions))
            rates.append(self._rate())
        return sum(rates) / times

    def _rate(self) -> float:
        start, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < MEASURED_S:
            self.envs.step(next(self._actions))
            steps += 1
        return steps * self.envs.num_envs / elapsed

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


if __name__ == "__main__":
    after, between = (
        Contender(name, functools.partial(AfterAPause, pause=pause))
        for name, pause in (("after a pause", True), ("without a pause", False))
    )
    claims = [Claim(after, between, BOUND)]
    check(
        "CartPole-v1 after the caller computed",
        functools.partial(gym.make, "CartPole-v1"),
        {32: claims, 128: claims},
    )
