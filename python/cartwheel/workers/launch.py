"""Starts workers: in the calling thread, in threads, or in processes.

Each worker makes its environments itself. The caller learns their spaces from the descriptions that
the workers send.
"""

from __future__ import annotations

import errno
import functools
import os
import pickle
import resource
import sys
import threading
from typing import TYPE_CHECKING, Any

import cloudpickle

from cartwheel._cartwheel import Memory, Shard
from cartwheel._internal.process import process_lock, uninterrupted
from cartwheel.errors import add_note, named_rows
from cartwheel.workers.channels import LocalChannel, LocalWorkerChannel
from cartwheel.workers.group import WorkerGroup
from cartwheel.workers.process import StartProcess, check_can_start
from cartwheel.workers.serving.serve import serve_thread
from cartwheel.workers.serving.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.workers.restart_policy import RestartPolicy


def start_inline(
    env_fns: Sequence[EnvFn],
    shards: list[tuple[int, int]],
    *,
    reserve: bool,
    restart_policy: RestartPolicy,
) -> WorkerGroup:
    """Makes the environments in the calling thread, which also steps them."""
    channel = LocalChannel()
    worker = Worker(
        LocalWorkerChannel(channel),
        0,
        is_remote=False,
        reserve=reserve,
        restart_policy=restart_policy,
    )
    objects: list[list[list[Any]] | None] = [[[] for _ in env_fns]]
    descriptions = [worker.build(env_fns)]
    return WorkerGroup(
        shards,
        [channel],
        local=worker,
        objects=objects,
        descriptions=descriptions,
        restart_policy=restart_policy,
    )


def start_threads(
    env_fns: Sequence[EnvFn],
    shards: list[tuple[int, int]],
    *,
    name: str,
    spin: bool,
    restart_policy: RestartPolicy,
) -> WorkerGroup:
    """Starts one thread for each shard, which makes and keeps its own environments.

    Threads render in turn, because drawing libraries release the GIL while they use state that is
    global to the process. In pygame, all polygons share one buffer of vertices in SDL_gfx, and two
    threads that draw at the same time sometimes draw each other's vertices.

    Raises:
        RuntimeError: The system starts no more threads; those that were started have ended.
    """
    group = WorkerGroup(shards, restart_policy=restart_policy)
    drawing = threading.Lock()
    try:
        for index, (first, last) in enumerate(shards):
            channel = LocalChannel()
            its = LocalWorkerChannel(channel)
            worker = Worker(
                its, first, is_remote=False, restart_policy=restart_policy, drawing=drawing
            )
            thread = threading.Thread(
                target=serve_thread,
                args=(worker, its, index, env_fns[first:last]),
                kwargs={"spin": spin},
                name=f"Worker<{name}>-{index}",
                daemon=True,
            )
            with uninterrupted():  # otherwise a started thread could be lost
                thread.start()
                group.threads.append(thread)
                group.channels.append(channel)
                group.objects.append([[] for _ in range(first, last)])
    except BaseException:
        group.give_up()
        raise
    return group


def start_processes(
    env_fns: Sequence[EnvFn],
    shards: list[tuple[int, int]],
    *,
    name: str,
    context: Any,
    daemon: bool,
    spin: bool,
    restart_policy: RestartPolicy,
) -> WorkerGroup:
    """Starts one process for each shard.

    Raises:
        RuntimeError: This process may have no child processes, or the main module has no
            ``if __name__ == "__main__":``.
        TypeError: Some of ``env_fns`` cannot be pickled; no process was started.
        OSError: Too few file descriptors are left; no process was started.
    """
    check_can_start("make the vector environment with executor='inline' or 'thread', or ")
    require_descriptors(len(shards), retires=restart_policy.retires)
    forks = context.get_start_method() == "fork"
    parts: list[bytes | Sequence[EnvFn]] = [
        env_fns[first:last] if forks else _pickled(list(env_fns[first:last]), env_fns, first, last)
        for first, last in shards
    ]
    group = _unstarted(StartProcess(shards, parts, name, context, daemon, spin, restart_policy))
    try:
        for index in range(len(shards)):
            group.start(index)
    except BaseException:
        group.give_up()
        raise
    return group


def prepare_processes(
    parts: list[bytes], *, name: str, context: Any, daemon: bool, restart_policy: RestartPolicy
) -> WorkerGroup:
    """Returns workers of one row each, whose processes are started later.

    Args:
        parts: The pickled function of each row, in a list; entries may be replaced until the
            worker's process is started.
        name: The class of the vector environment.
        context: The ``multiprocessing`` context; not one that forks.
        daemon: Whether the processes are daemonic.
        restart_policy: How failures are handled.

    Raises:
        RuntimeError: As for :func:`start_processes`.
        OSError: As for :func:`start_processes`.
    """
    check_can_start()
    require_descriptors(len(parts), fewer="rows")
    ranges = [(row, row + 1) for row in range(len(parts))]
    start = StartProcess(ranges, list(parts), name, context, daemon, False, restart_policy)
    return _unstarted(start, may_fork=False)


def _unstarted(start: StartProcess, *, may_fork: bool = True) -> WorkerGroup:
    """Returns worker processes that :meth:`WorkerGroup.start` starts."""
    workers = len(start.shards)
    return WorkerGroup(
        start.shards,
        channels=[LocalChannel() for _ in range(workers)],
        processes=[None] * workers,
        objects=[None] * workers,
        restart_policy=start.restart_policy,
        start_process=start,
        may_fork=may_fork,
    )


def pickled_apart(env_fns: Sequence[EnvFn]) -> list[bytes]:
    """Pickles each function; functions that are the same object, once.

    Raises:
        TypeError: One cannot be pickled.
    """
    known: dict[int, bytes] = {}
    for row, env_fn in enumerate(env_fns):
        if id(env_fn) not in known:
            known[id(env_fn)] = _pickled(env_fn, env_fns, row, row + 1)
    return [known[id(env_fn)] for env_fn in env_fns]


def _pickled(content: object, env_fns: Sequence[EnvFn], first: int, last: int) -> bytes:
    """Pickles ``content``, which is made of the functions of these rows."""
    try:
        data: bytes = cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        rows = [row for row in range(first, last) if not _can_be_pickled(env_fns[row])]
        what = f"env_fns[{rows[0]}]" if len(rows) == 1 else "env_fns"
        raise add_note(
            TypeError(
                f"{what} cannot be pickled for a worker process: {error}. Make such an object "
                "within the function, which the worker calls."
            ),
            f"in the functions of {named_rows(rows)}" if rows else "in all of them together",
        ) from error
    return data


def _can_be_pickled(env_fn: EnvFn) -> bool:
    try:
        cloudpickle.dumps(env_fn)
    except Exception:
        return False
    return True


def set_up(group: WorkerGroup, plan: dict[str, Any], rows: dict[str, Any]) -> tuple[Memory, Shard]:
    """Makes the memory and sends it to worker processes, which then begin to serve.

    Args:
        group: Workers that have described their environments.
        plan: Keywords of ``Memory``.
        rows: Keywords of ``Shard`` about the steps and resets of rows.

    Returns:
        The memory, and the caller's own shard. With threads and processes, this shard only
        describes the environments and steps none.
    """
    memory, own = make_memory(group, plan, rows)
    for worker in range(len(group.processes)):
        group.hand_over(worker)
    return memory, own


def let_threads_serve(group: WorkerGroup) -> None:
    """Sends the memory to worker threads, which then serve until their pool is closed.

    So there must be a pool that the caller closes if an exception comes.
    """
    assert group.setup is not None, "there is memory to send"
    memory, _, shard = group.setup
    for channel, objects in zip(group.channels, group.objects, strict=True):
        if isinstance(channel, LocalChannel) and group.local is None:
            channel.post((memory, functools.partial(Shard, **shard, objects=objects)))


def make_memory(
    group: WorkerGroup, plan: dict[str, Any], rows: dict[str, Any]
) -> tuple[Memory, Shard]:
    """Makes the memory and the caller's own shard, as :func:`set_up` returns them."""
    memory = Memory(**plan, shared=bool(group.processes))
    of_both = ("observations", "actions", "dense_finals", "reward_width")
    shard = {**{name: plan[name] for name in of_both}, **rows}
    group.setup = (memory, plan, shard)
    own = group.local or Worker(LocalWorkerChannel(LocalChannel()), 0, is_remote=False)
    return memory, Shard(own, **shard, objects=group.objects[0])


#: The folder in which Linux or macOS lists the open descriptors.
_LISTED = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
#: For each worker: its socket, two pidfds, the copy of stderr, and two pipes of
#: ``multiprocessing``. A worker that may retire also has a file for what it leaves.
_PER_WORKER = 6
#: For all: four of the memory, two of a pipe, and some that are open briefly, as while a process
#: starts.
_SHARED = 16


#: Held while the limit is raised, for threads that make vector environments at the same time.
_limit_lock = process_lock()


def require_descriptors(
    num_workers: int, *, retires: bool = False, fewer: str = "workers (`num_workers`)"
) -> None:
    """Raises the limit of open descriptors to the number that the workers need.

    If the soft limit is too low, it is raised to what is needed, where the hard limit allows that.
    It stays raised, for workers too: a worker that is restarted needs descriptors at any time.

    The check comes before the first worker is started, because ``multiprocessing`` leaves pipes
    open when it runs out of descriptors.

    Raises:
        OSError: Too few descriptors are left; ``errno`` is ``EMFILE``.
    """
    with _limit_lock:
        limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = _open_descriptors(limit)
        needed = (_PER_WORKER + retires) * num_workers + _SHARED
        if limit == resource.RLIM_INFINITY or taken + needed <= limit:
            return
        if hard != resource.RLIM_INFINITY and taken + needed > hard:
            raise OSError(
                errno.EMFILE,
                f"{num_workers} worker processes need {needed} file descriptors and {hard - taken} "
                f"are left of {hard}: allow more (`ulimit -n`), or use fewer "
                f"{fewer}",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + needed, hard))


def affordable_workers() -> int:
    """Returns the number of worker processes for which the hard limit of descriptors is enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, hard - _open_descriptors(hard) - _SHARED) // _PER_WORKER


def _open_descriptors(limit: int) -> int:
    return sum(int(name) < limit for name in os.listdir(_LISTED))  # noqa: PTH208 - faster
