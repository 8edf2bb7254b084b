"""Starts workers: in the calling thread, in threads, or in processes.

Each worker makes its environments itself. The caller learns their spaces from the descriptions that
the workers send.
"""

from __future__ import annotations

import functools
import pickle
import threading
from typing import TYPE_CHECKING, Any, Protocol

import cloudpickle

from cartwheel._cartwheel import Memory, Shard
from cartwheel.errors import add_note
from cartwheel.uninterrupted import uninterrupted
from cartwheel.worker.crew import Crew
from cartwheel.worker.descriptors import require_descriptors
from cartwheel.worker.local import LocalChannel, LocalWorkerChannel
from cartwheel.worker.start import StartProcess, check_can_start
from cartwheel.worker.worker import Worker, serve_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel.arguments import EnvFn
    from cartwheel.worker.recovery import Recovery


class Start(Protocol):
    """Starts the workers of one executor."""

    def __call__(self, env_fns: Sequence[EnvFn], shards: list[tuple[int, int]]) -> Crew:
        """Starts one worker for each shard."""


def start_inline(
    env_fns: Sequence[EnvFn], shards: list[tuple[int, int]], *, reserve: bool, recovery: Recovery
) -> Crew:
    """Makes the environments in the calling thread, which also steps them."""
    channel = LocalChannel()
    worker = Worker(
        LocalWorkerChannel(channel), 0, travels=False, reserve=reserve, recovery=recovery
    )
    objects: list[list[list[Any]] | None] = [[[] for _ in env_fns]]
    descriptions = [worker.build(env_fns)]
    return Crew(
        shards,
        [channel],
        local=worker,
        objects=objects,
        descriptions=descriptions,
        recovery=recovery,
    )


def start_threads(
    env_fns: Sequence[EnvFn],
    shards: list[tuple[int, int]],
    *,
    name: str,
    spin: bool,
    recovery: Recovery,
) -> Crew:
    """Starts one thread for each shard, which makes and keeps its own environments.

    Threads render in turn, because drawing libraries release the GIL while they use state that is
    global to the process. In pygame, all polygons share one buffer of corners in SDL_gfx, and two
    threads that draw at the same time sometimes draw each other's corners.

    Raises:
        RuntimeError: The system starts no more threads; those that were started have ended.
    """
    crew = Crew(shards, recovery=recovery)
    drawing = threading.Lock()
    try:
        for index, (first, last) in enumerate(shards):
            channel = LocalChannel()
            its = LocalWorkerChannel(channel)
            worker = Worker(its, first, travels=False, recovery=recovery, drawing=drawing)
            thread = threading.Thread(
                target=serve_thread,
                args=(worker, its, index, env_fns[first:last]),
                kwargs={"spin": spin},
                name=f"Worker<{name}>-{index}",
                daemon=True,
            )
            with uninterrupted():  # otherwise a thread could belong to no crew
                thread.start()
                crew.threads.append(thread)
                crew.channels.append(channel)
                crew.objects.append([[] for _ in range(first, last)])
    except BaseException:
        crew.give_up()
        raise
    return crew


def start_processes(
    env_fns: Sequence[EnvFn],
    shards: list[tuple[int, int]],
    *,
    name: str,
    context: Any,
    daemon: bool,
    spin: bool,
    recovery: Recovery,
) -> Crew:
    """Starts one process for each shard.

    Raises:
        RuntimeError: This process may have no child processes, or the main module has no
            ``if __name__ == "__main__":``.
        TypeError: Some of ``env_fns`` cannot be pickled; no process was started.
        OSError: Too few file descriptors are left; no process was started.
    """
    check_can_start()
    require_descriptors(len(shards))
    forks = context.get_start_method() == "fork"
    parts: list[bytes | Sequence[EnvFn]] = [
        env_fns[first:last] if forks else _pickled(env_fns, first, last) for first, last in shards
    ]
    start = StartProcess(shards, parts, name, context, daemon, spin, recovery)
    crew = Crew(shards, recovery=recovery, start_process=start)
    try:
        for index in range(len(shards)):
            with uninterrupted():  # otherwise a process could belong to nobody
                process, channel = start(index)
                crew.processes.append(process)
                crew.channels.append(channel)
                crew.objects.append(None)
    except BaseException:
        crew.give_up()
        raise
    return crew


def _pickled(env_fns: Sequence[EnvFn], first: int, last: int) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(list(env_fns[first:last]), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        rows = [row for row in range(first, last) if not _can_be_pickled(env_fns[row])]
        raise add_note(
            TypeError(f"env_fns cannot be pickled for a worker process: {error}"),
            f"in the functions of rows {rows}" if rows else "in all of them together",
        ) from error
    return data


def _can_be_pickled(env_fn: EnvFn) -> bool:
    try:
        cloudpickle.dumps(env_fn)
    except Exception:
        return False
    return True


def set_up(crew: Crew, plan: dict[str, Any], shard: dict[str, Any]) -> tuple[Memory, Shard]:
    """Makes the memory and sends it to the workers, which then begin to serve.

    Args:
        crew: Workers that have described their environments.
        plan: Keywords of ``Memory``.
        shard: Keywords of ``Shard``, besides the worker and the objects.

    Returns:
        The memory, and the caller's own shard. With threads and processes, this shard only
        describes the environments and steps none.
    """
    memory = Memory(**plan, shared=bool(crew.processes))
    crew.setup = (memory, plan, shard)
    for worker in range(len(crew.processes)):
        crew.hand_over(worker, shard)
    for channel, objects in zip(crew.channels, crew.objects, strict=True):
        if isinstance(channel, LocalChannel) and crew.local is None:
            make_shard = functools.partial(Shard, **shard, objects=objects)
            channel.post((memory, make_shard))
    own = crew.local or Worker(LocalWorkerChannel(LocalChannel()), 0, travels=False)
    return memory, Shard(own, **shard, objects=crew.objects[0])
