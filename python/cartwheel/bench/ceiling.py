"""The ceilings: loops on all cores at once, each over its own environments, never synchronised."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import pickle
import signal
import time
from typing import TYPE_CHECKING, Any

import cloudpickle
from gymnasium.vector.utils import batch_space, iterate

from cartwheel._cartwheel import plain_loop, shards, usable_cpus
from cartwheel.bench.runner import ACTION_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    import gymnasium as gym

    from cartwheel.arguments import EnvFn

CLOCK_READS = 50
"""How often a loop looks at the clock in one run: rarely, because that takes time too."""


class Ceiling:
    """One process for each usable core, each with a bare loop over its share of the environments.

    The environments are dealt to the processes as ``cartwheel.VectorEnv`` deals them to its
    workers, so both keep the same number of them in each core's caches; with fewer environments
    than cores there are fewer processes. A loop steps its environments in turn. One whose episode
    is over is reset in its next turn, which counts as a step: the same work for each counted step
    as in autoreset mode ``NEXT_STEP``. Actions are what a vector environment hands on: rows of
    sampled batches, so NumPy integers where a batch is an array of integers.
    """

    note = ""

    def __init__(self, env_fns: Sequence[EnvFn]) -> None:
        """Starts the processes, which make their environments, and waits until all are ready."""
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes = []
        for first, last in shards(len(env_fns), usable_cpus()):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(theirs, cloudpickle.dumps(list(env_fns[first:last])), first),
                daemon=True,
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


class NativeCeiling:
    """Plain loops in Rust over native environments: one for each usable core, no interface at all.

    The environments are dealt as to the processes of :class:`Ceiling`, and an episode that is over
    begins again in the same way.
    """

    note = ""

    def __init__(
        self, env_id: str, num_envs: int, options: str, *, threads: int, blocks: bool
    ) -> None:
        """Describes the loops; arguments as for ``_cartwheel.plain_loop``."""
        self._loop = functools.partial(
            plain_loop,
            env_id,
            num_envs,
            options=options,
            threads=threads,
            blocks=blocks,
        )

    def run(self, seconds: float) -> float:
        """Runs all loops at once for ``seconds`` and returns the sum of their steps per second."""
        return self._loop(seconds=seconds)

    def close(self) -> None:
        """Holds nothing between two runs."""


def _serve(connection: Connection, env_fns: bytes, first: int) -> None:
    """A process of the ceiling: runs its loop at each message, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the caller, which ends this process
    envs: list[gym.Env[Any, Any]] = [env_fn() for env_fn in pickle.loads(env_fns)]
    space = batch_space(envs[0].action_space, len(envs))
    space.seed(first)
    actions = itertools.cycle(
        [tuple(iterate(space, space.sample())) for _ in range(ACTION_BATCHES)]
    )
    try:
        connection.send("ready")
        while True:
            seconds = connection.recv()
            for row, env in enumerate(envs, first):
                env.reset(seed=row)
            connection.send(_rate(envs, actions, seconds))
    except (EOFError, ConnectionError):
        for env in envs:
            env.close()


def _rate(
    envs: list[gym.Env[Any, Any]], actions: Iterator[tuple[Any, ...]], seconds: float
) -> float:
    """Steps ``envs`` in turn for ``seconds``, at least once; returns the steps per second."""
    rows = [(row, env.step, env.reset) for row, env in enumerate(envs)]
    over = [False] * len(envs)
    turns, slice_len, elapsed = 0, 1, 0.0
    start = time.perf_counter()
    while turns == 0 or elapsed < seconds:
        for batch in itertools.islice(actions, slice_len):
            for row, step, reset in rows:
                if over[row]:
                    reset()
                    over[row] = False
                else:
                    _, _, terminated, truncated, _ = step(batch[row])
                    over[row] = terminated or truncated
        turns += slice_len
        elapsed = time.perf_counter() - start
        slice_len = max(1, min(2 * slice_len, int(turns / elapsed * seconds / CLOCK_READS)))
    return turns * len(envs) / elapsed
