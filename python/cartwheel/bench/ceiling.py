"""Ceilings: bare loops on all cores at once, each over its own environments.

Loops that are never synchronized are the limit of the cores. Loops in lockstep are the limit of a
``step`` of all rows, which ends with its slowest core.
"""

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

    from cartwheel._internal.arguments import EnvFn

NO_TURN = 2**62
"""The number of the last turn, until it is decided."""
CLOCK_READS = 50
"""Looks of a loop at the clock in one run: few, because they take time too."""


class Ceiling:
    """One process for each usable core, each with a bare loop over its share of the environments.

    The environments are divided among the processes as ``cartwheel.VectorEnv`` divides them among
    its workers, so both keep the same number of them in each core's caches; with fewer environments
    than cores there are fewer processes. A loop steps its environments in turn. One whose episode
    is over is reset in its next turn, which counts as a step: the same work for each counted step
    as in autoreset mode ``NEXT_STEP``. Actions have the form in which a vector environment passes
    them on: rows of sampled batches, so NumPy integers where a batch is an array of integers.
    """

    note = ""

    def __init__(self, env_fns: Sequence[EnvFn], *, lockstep: bool = False) -> None:
        """Starts the processes, which make their environments, and waits until all are ready.

        Args:
            env_fns: Make one environment each.
            lockstep: After each turn over its environments, a process spins until all have made
                that turn, without a caller.
        """
        context = multiprocessing.get_context("spawn")
        ranges = shards(len(env_fns), usable_cpus())
        # The turns of each process, and the last turn, which the first process decides.
        self._turns = context.RawArray("q", len(ranges) + 1) if lockstep else None
        self._connections: list[Connection] = []
        self._processes = []
        for number, (first, last) in enumerate(ranges):
            own_end, other_end = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(
                    *(other_end, cloudpickle.dumps(list(env_fns[first:last])), first),
                    self._turns and Lockstep(self._turns, number),
                ),
                daemon=True,
            )
            process.start()
            other_end.close()
            self._connections.append(own_end)
            self._processes.append(process)
        for connection in self._connections:
            connection.recv()  # it is ready

    def run(self, seconds: float) -> float:
        """Runs all loops at once for ``seconds`` and returns the sum of their steps per second."""
        if self._turns is not None:
            self._turns[:] = [0] * (len(self._turns) - 1) + [NO_TURN]
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

    The environments are divided as among the processes of :class:`Ceiling`, and episodes that are
    over begin again in the same way.
    """

    note = ""

    def __init__(
        self, env_id: str, num_envs: int, options: str, *, threads: int, blocks: bool
    ) -> None:
        """Describes the loops; arguments as for ``_cartwheel.plain_loop``."""
        self._loop = functools.partial(
            plain_loop, env_id, num_envs, options=options, threads=threads, blocks=blocks
        )

    def run(self, seconds: float) -> float:
        """Runs all loops at once for ``seconds`` and returns the sum of their steps per second."""
        return self._loop(seconds=seconds)

    def close(self) -> None:
        """Does nothing: nothing is held between two runs."""


class Lockstep:
    """Keeps the processes of a ceiling at the same turn, by integers in shared memory."""

    def __init__(self, turns: Any, number: int) -> None:
        """``turns`` has an entry for each process and one for the last turn."""
        self._turns, self._number = turns, number
        self._others = [other for other in range(len(turns) - 1) if other != number]

    def wait(self, turn: int, *, is_over: bool) -> bool:
        """Spins until every process has made ``turn``; returns whether it is the last.

        The first process decides, by ``is_over``. It announces the last turn one turn ahead,
        because no process can be more than one turn ahead of it.
        """
        turns = self._turns
        if is_over and self._number == 0 and turns[-1] == NO_TURN:
            turns[-1] = turn + 1
        turns[self._number] = turn
        for other in self._others:
            while turns[other] < turn:
                pass
        return bool(turn >= turns[-1])


def _serve(connection: Connection, env_fns: bytes, first: int, lockstep: Lockstep | None) -> None:
    """Runs the loop of a process at each message, until the other end closes."""
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
            connection.send(_rate(envs, actions, seconds, lockstep))
    except (EOFError, ConnectionError):
        for env in envs:
            env.close()


def _rate(
    envs: list[gym.Env[Any, Any]],
    actions: Iterator[tuple[Any, ...]],
    seconds: float,
    lockstep: Lockstep | None,
) -> float:
    """Steps ``envs`` in turn for ``seconds``, at least once; returns the steps per second."""
    rows = [(row, env.step, env.reset) for row, env in enumerate(envs)]
    over = [False] * len(envs)
    turns, slice_len, elapsed = 0, 1, 0.0
    start = time.perf_counter()
    is_last = False
    while not is_last:
        for batch in itertools.islice(actions, slice_len):
            for row, step, reset in rows:
                if over[row]:
                    reset()
                    over[row] = False
                else:
                    _, _, terminated, truncated, _ = step(batch[row])
                    over[row] = terminated or truncated
            if lockstep is not None:
                turns += 1
                is_last = lockstep.wait(turns, is_over=elapsed >= seconds)
                if is_last:
                    break
        elapsed = time.perf_counter() - start
        if lockstep is None:
            turns += slice_len
            is_last = elapsed >= seconds
        slice_len = max(1, min(2 * slice_len, int(turns / elapsed * seconds / CLOCK_READS)))
    return turns * len(envs) / elapsed
