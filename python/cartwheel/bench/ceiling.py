"""The ceiling: what the cores do when each steps its own environment and none waits for another."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import time
from typing import TYPE_CHECKING, Any

import cloudpickle

from cartwheel.bench.measure import ACTION_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    import gymnasium as gym

    from cartwheel.bench.contenders import EnvFn

CLOCK_READS = 50
"""How often a loop looks at the clock in one run: rarely, because that takes time too."""


def usable_cores() -> int:
    """Number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


class Ceiling:
    """One process for each usable core, each with a bare loop over an environment of its own.

    A loop calls ``step`` until the episode is over, then ``reset``, which counts as one step: the
    same work for each counted step as a vector environment does in autoreset mode ``NEXT_STEP``.
    """

    def __init__(self, env_fn: EnvFn) -> None:
        """Starts the processes; each of them calls ``env_fn`` once."""
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes = []
        for seed in range(usable_cores()):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, cloudpickle.dumps(env_fn), seed), daemon=True
            )
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
        for connection in self._connections:
            connection.recv()  # it is ready

    def run(self, seconds: float) -> float:
        """Runs all loops at once for ``seconds`` and returns the sum of their steps per second."""
        for connection in self._connections:
            connection.send(seconds)
        return float(sum(connection.recv() for connection in self._connections))

    def close(self) -> None:
        """Ends the processes."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()


def _serve(connection: Connection, env_fn: bytes, seed: int) -> None:
    """A process of the ceiling: runs the loop whenever it is told to, until nobody listens."""
    env: gym.Env[Any, Any] = pickle.loads(env_fn)()
    env.action_space.seed(seed)
    actions = itertools.cycle([env.action_space.sample() for _ in range(ACTION_BATCHES)])
    env.reset(seed=seed)
    connection.send("ready")
    try:
        while True:
            connection.send(_rate(env, actions, connection.recv()))
            env.reset()
    except EOFError:
        env.close()


def _rate(env: gym.Env[Any, Any], actions: Iterator[Any], seconds: float) -> float:
    """Steps ``env`` for ``seconds``, at least once; returns the steps per second."""
    over = False
    count, slice_len, elapsed = 0, 1, 0.0
    start = time.perf_counter()
    while count == 0 or elapsed < seconds:
        for action in itertools.islice(actions, slice_len):
            if over:
                env.reset()
                over = False
            else:
                _, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
        count += slice_len
        elapsed = time.perf_counter() - start
        slice_len = max(1, min(2 * slice_len, int(count / elapsed * seconds / CLOCK_READS)))
    return count / elapsed
