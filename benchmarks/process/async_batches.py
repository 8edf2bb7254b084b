"""Steps of 1 to 10 ms: rows a second in batches of the first rows to finish, and in lockstep.

Each step draws its own duration, 1 to 10 ms, evenly on a logarithmic scale: half of the steps take
less than 3.2 ms. In lockstep a batch takes as long as its slowest row; a batch of the first eight
rows does not wait for it.

There are two kinds of environments. The first kind sleeps, as if it waited for a simulator or for
another machine, and each has its own worker. The second kind computes, with one worker for each
core. It gains little if there are few cores: in lockstep, too, each worker steps one row after the
other, and only waits at the end of the batch.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check
from benchmarks.harness.workloads import Timed, rounds_of
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import ACTION_BATCHES, VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn

NUM_ENVS, BATCH_SIZE = 16, 8


class Uneven(Timed):
    """An environment whose steps take 1 to 10 ms."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Draws the duration, and takes as long."""
        self.step_ms = 10 ** self.np_random.random()
        return super().step(action)


class SendRunner:
    """Times a loop of ``recv`` and ``send``: received rows are sent again at once."""

    def __init__(self, envs: cartwheel.VectorEnv) -> None:
        """Takes over ``envs``, resets them and samples actions."""
        self.envs = envs
        envs.single_action_space.seed(0)
        sample = envs.single_action_space.sample
        self._actions = np.array([[sample()] * envs.num_envs for _ in range(ACTION_BATCHES)])
        self.note = ""
        self._row_s = float("inf")  # time of a row in the last run
        envs.send_reset(seed=0)
        self._receive(envs.num_envs)

    def _receive(self, rows: int) -> None:
        while rows:
            rows -= len(self.envs.recv()[1])

    def run(self, seconds: float) -> float:
        """Steps for about ``seconds``; returns rows per second.

        Begins and ends with no row in flight, so every step is within the measured time.
        """
        envs, size = self.envs, self.envs.batch_size
        turns = max(1, round(seconds / self._row_s / size))
        start = time.perf_counter()
        envs.send(self._actions[0], range(envs.num_envs))
        for turn in range(turns):
            rows = envs.recv()[4]["env_index"]
            envs.send(self._actions[turn % ACTION_BATCHES, : len(rows)], rows)
        self._receive(envs.num_envs)
        elapsed = time.perf_counter() - start
        stepped = turns * size + envs.num_envs
        self._row_s = elapsed / stepped
        return stepped / elapsed

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()


def in_lockstep(num_workers: int | None) -> Contender:
    """``step`` of all rows."""

    def build(env_fns: Sequence[EnvFn]) -> VectorRunner:
        envs = cartwheel.VectorEnv(env_fns, executor="process", num_workers=num_workers)
        envs.reset(seed=0)
        return VectorRunner(envs, sample_actions(envs.action_space))

    return Contender("step", build)


def in_batches(num_workers: int | None) -> Contender:
    """``recv`` and ``send`` of the first rows to finish."""

    def build(env_fns: Sequence[EnvFn]) -> SendRunner:
        return SendRunner(
            cartwheel.VectorEnv(
                env_fns, executor="process", num_workers=num_workers, batch_size=BATCH_SIZE
            )
        )

    return Contender(f"recv, send of {BATCH_SIZE}", build)


if __name__ == "__main__":
    kinds: list[tuple[str, int, int | None, float]] = [
        ("sleeping, a worker each", 0, NUM_ENVS, 1.5),
        ("computing, a worker a core", rounds_of(1e-3), None, 0.95),
    ]
    for name, rounds_a_ms, num_workers, bound in kinds:
        check(
            f"steps of 1 to 10 ms, {name}",
            functools.partial(Uneven, 1.0, rounds_a_ms=rounds_a_ms),
            {NUM_ENVS: [Claim(in_batches(num_workers), in_lockstep(num_workers), bound)]},
        )
