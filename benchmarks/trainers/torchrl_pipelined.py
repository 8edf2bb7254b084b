"""Rollouts whose rows are in flight, against TorchRL's collectors over the same environments.

Steps, resets and calls of the policy take known times (``benchmarks.harness.workloads``). TorchRL
collects with ``Collector`` over ``ParallelEnv``, and with ``AsyncBatchedCollector``, which lets
every row advance by itself, in threads. ``AsyncBatchedCollector`` returns transitions as they
arrive, and ``Collector`` of cartwheel returns whole columns. Against each of the two the bound is
the same, so the better one is beaten by it.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import AsyncBatchedCollector, Collector
from torchrl.envs import GymWrapper, ParallelEnv

import cartwheel
from benchmarks.harness.claim import Claim, check
from benchmarks.harness.workloads import Timed, rounds_of, wait
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

ROWS, STEPS = 16, 32


def waiting(milliseconds: float, observation: torch.Tensor) -> torch.Tensor:
    """A policy that waits, as for an accelerator: action 0 for each row, one-hot."""
    wait(milliseconds)
    actions = torch.zeros((*observation.shape[:-1], 2), dtype=torch.int64)
    actions[..., 0] = 1
    return actions


class Batches:
    """An iterator over batches of about ``ROWS × STEPS`` rows, repeatedly."""

    def __init__(self, batches: Any, size: Callable[[Any], int], close: Callable[[], None]) -> None:
        """Takes one batch, which starts everything."""
        self.batches, self.size, self.close, self.note = batches, size, close, ""
        next(batches)
        torch.set_num_threads(1)  # `ParallelEnv` raises it for the whole program
        self._batch_s = float("inf")  # time of a batch in the last run

    def run(self, seconds: float) -> float:
        """Collects for about ``seconds``, at least once; returns rows per second."""
        turns, rows = max(1, round(seconds / self._batch_s)), 0
        next(self.batches)  # rows that were done while others were timed do not count
        start = time.perf_counter()
        for _ in range(turns):
            rows += self.size(next(self.batches))
        elapsed = time.perf_counter() - start
        self._batch_s = elapsed / turns
        return rows / elapsed


def wrapped(env_fn: EnvFn) -> GymWrapper:
    """TorchRL's wrapper around one environment."""
    return GymWrapper(env_fn())


def torchrl(policy_ms: float, *, in_lockstep: bool) -> Contender:
    """TorchRL's collector of all rows together, or of rows that advance by themselves."""

    def build(env_fns: Sequence[EnvFn]) -> Batches:
        make = [functools.partial(wrapped, env_fn) for env_fn in env_fns]
        policy = TensorDictModule(
            functools.partial(waiting, policy_ms), in_keys=["observation"], out_keys=["action"]
        )
        frames: dict[str, Any] = {"frames_per_batch": ROWS * STEPS, "total_frames": -1}
        if in_lockstep:
            env = ParallelEnv(len(make), make, mp_start_method="fork")
            collector: Any = Collector(env, policy, **frames)
        else:
            collector = AsyncBatchedCollector(
                make, policy=policy, env_backend="threading", **frames
            )
        return Batches(iter(collector), lambda batch: batch.numel(), collector.shutdown)

    return Contender("ParallelEnv" if in_lockstep else "AsyncBatchedCollector", build)


def free(policy_ms: float, *, worker_a_row: bool) -> Contender:
    """Rows that advance by themselves."""

    def act(observations: Any) -> Any:
        wait(policy_ms)
        return [0] * len(observations)

    def build(env_fns: Sequence[EnvFn]) -> Batches:
        envs = cartwheel.VectorEnv(
            env_fns, executor="process", num_workers=len(env_fns) if worker_a_row else None
        )
        collector = cartwheel.Collector(envs, act, STEPS, seed=1, order="free", run_ahead=1)

        def close() -> None:
            collector.close()
            envs.close()

        rollouts = iter(collector.collect, None)
        return Batches(rollouts, lambda rollout: rollout.rewards.size, close)

    return Contender("free, ahead", build)


def compare(work: str, env_fn: EnvFn, policy_ms: float, bound: float, *, waits: bool) -> None:
    """Checks one bound against both collectors of TorchRL."""
    ours = free(policy_ms, worker_a_row=waits)
    both = [torchrl(policy_ms, in_lockstep=in_lockstep) for in_lockstep in (True, False)]
    check(work, env_fn, {ROWS: [Claim(ours, theirs, bound) for theirs in both]})


if __name__ == "__main__":
    torch.set_num_threads(1)
    computes = functools.partial(Timed, 1.0, rounds_a_ms=rounds_of(1e-3))
    compare("1 ms of computing, a policy of 4 ms", computes, 4.0, 2.0, waits=False)
    uneven = functools.partial(Timed, 2.0, sigma=1.0)
    compare("2 ms of waiting, lognormal, a policy of 1 ms", uneven, 1.0, 3.0, waits=True)
    resets = functools.partial(Timed, 1.0, reset_ms=200.0, episode=50)
    compare("1 ms of waiting, resets of 200 ms, a policy of 1 ms", resets, 1.0, 3.0, waits=True)
