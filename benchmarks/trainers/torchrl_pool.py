"""TorchRL's ``AsyncEnvPool`` in two series of its own benchmarks, against ``send`` and ``recv``.

The series are those of ``benchmarks/test_envs_benchmark.py`` in https://github.com/pytorch/rl: 8
environments that count and take no time, and 32 whose steps wait for 1 ms and whose resets, after
every 200 steps, wait for 200 ms. TorchRL steps its own ``CountingEnv``, a process for each, with
``exchange="shm"`` and ``"queue"``: its loop takes what is ready, at least one row, writes actions
and sends them. Over 32 environments its queue is left out, as in its series.

cartwheel steps the same environment of Gymnasium. Its loop receives the rows that are ready first,
in batches of one row and of more, in ``SAME_STEP``: as in TorchRL's ``step_and_maybe_reset``, a
reset belongs to the step before it. Waiting environments have a process each, as TorchRL's do.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from tensordict import set_capture_non_tensor_stack
from torchrl.envs import AsyncEnvPool
from torchrl.testing.mocking_classes import CountingEnv

import cartwheel
from benchmarks.harness.claim import Claim
from benchmarks.harness.peers import PeerClaim, PeerRace, measure, version_of
from benchmarks.harness.workloads import wait
from cartwheel.bench.contenders import Contender

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.arguments import EnvFn

NEVER = 10_000_000


class Counting(gym.Env[Any, Any]):
    """Counts its actions until an episode is over."""

    observation_space = gym.spaces.Box(0, np.iinfo(np.int32).max, (1,), np.int32)
    action_space = gym.spaces.Box(0, 1, (1,), np.float32)

    def __init__(self, step_ms: float, reset_ms: float, length: int) -> None:
        """Waits for these times."""
        self.step_ms, self.reset_ms, self.length = step_ms, reset_ms, length
        self.count = np.zeros(1, np.int32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Waits, and counts from zero."""
        super().reset(seed=seed, options=options)
        wait(self.reset_ms)
        self.count[0] = 0
        return self.count, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Waits, and counts."""
        wait(self.step_ms)
        self.count[0] += int(action[0])
        return self.count, 0.0, bool(self.count[0] > self.length), False, {}


class Delayed(CountingEnv):
    """TorchRL's environment with the same times."""

    def __init__(self, step_ms: float, reset_ms: float, length: int) -> None:
        """Waits for these times."""
        super().__init__(max_steps=length)
        self.step_ms, self.reset_ms = step_ms, reset_ms

    def _step(self, tensordict: Any) -> Any:
        wait(self.step_ms)
        return super()._step(tensordict)

    def _reset(self, tensordict: Any, **keywords: Any) -> Any:
        wait(self.reset_ms)
        return super()._reset(tensordict, **keywords)


class Harvest:
    """Times a loop that receives rows and sends them on."""

    note = ""

    def __init__(self, turn: Callable[[], int], close: Callable[[], None]) -> None:
        """Takes over the function that receives and sends some rows, and says how many."""
        self._turn, self.close = turn, close

    def run(self, seconds: float) -> float:
        """Receives for about ``seconds``, at least once; returns rows per second."""
        rows, start = 0, time.perf_counter()
        while not rows or time.perf_counter() - start < seconds:
            for _ in range(16):  # reads the clock seldom
                rows += self._turn()
        return rows / (time.perf_counter() - start)


def theirs(exchange: str, times: tuple[float, float, int], env_fns: Sequence[EnvFn]) -> Harvest:
    """``AsyncEnvPool``, as its benchmark drives it."""
    num_envs = len(env_fns)
    capture = set_capture_non_tensor_stack(False)
    capture.__enter__()  # for all calls, as its benchmark does
    num_threads = torch.get_num_threads()
    make = [functools.partial(Delayed, *times)] * num_envs
    pool = AsyncEnvPool(make, backend="multiprocessing", exchange=exchange)
    torch.set_num_threads(num_threads)
    rows = pool.reset()
    rows["action"] = torch.ones(num_envs, 1)
    pool.async_step_and_maybe_reset_send(rows)

    def turn() -> int:
        _, rows = pool.async_step_and_maybe_reset_recv(min_get=1, max_get=num_envs)
        ready = int(rows.shape[0])
        rows["action"] = torch.ones(ready, 1)
        pool.async_step_and_maybe_reset_send(rows)
        return ready

    def close() -> None:
        pool.async_step_and_maybe_reset_recv(min_get=num_envs)
        pool.shutdown()
        capture.__exit__(None, None, None)

    return Harvest(turn, close)


def ours(batch_size: int, num_workers: int | None, env_fns: Sequence[EnvFn]) -> Harvest:
    """``send`` and ``recv``."""
    envs = cartwheel.VectorEnv(
        env_fns,
        executor="process",
        num_workers=num_workers,
        batch_size=batch_size,
        autoreset_mode="same_step",
        context="fork",
    )
    envs.send_reset(seed=0)

    def turn() -> int:
        rows = envs.recv()[4]["env_index"]
        envs.send(np.ones((len(rows), 1), np.float32), env_index=rows)
        return len(rows)

    return Harvest(turn, envs.close)


def races() -> list[PeerRace]:
    """One for each series."""
    found = []
    series: list[tuple[str, str, tuple[float, float, int], int, int, int | None, list[str]]] = [
        (
            "dispatch",
            "environments that take no time",
            (0.0, 0.0, NEVER),
            8,
            4,
            None,
            ["shm", "queue"],
        ),
        ("resets", "1 ms a step, resets of 200 ms", (1.0, 200.0, 200), 32, 8, 32, ["shm"]),
    ]
    for key, work, times, num_envs, batch, workers, exchanges in series:
        claims = []
        for exchange in exchanges:
            peer = Contender(f"torchrl {exchange}", functools.partial(theirs, exchange, times))
            rival = f"{version_of('torchrl')}, `AsyncEnvPool`, {exchange}"
            for size, bound in ((1, 1.0), (batch, 1.0)):
                own = Contender(f"cartwheel {size}", functools.partial(ours, size, workers))
                what = f"{work}, batches of {size}"
                claim = Claim(own, peer, bound)
                claims.append(PeerClaim(f"{key}_{exchange}_{size}", what, claim, rival))
        found.append(PeerRace(num_envs, claims, functools.partial(Counting, *times)))
    return found


if __name__ == "__main__":
    # As in TorchRL's own runs on Linux; it chooses "spawn", by which each process imports torch.
    multiprocessing.set_start_method("fork", force=True)
    torch.set_num_threads(1)
    measure(__doc__, races())
