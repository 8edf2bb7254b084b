"""The life of a worker in a thread and in a process, until it is closed.

Worker processes import this file by name, so it must not import a trainer.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import cloudpickle

from cartwheel._cartwheel import Descriptor, Memory, Shard, serve, watch_parent
from cartwheel._internal.process import name_this_thread
from cartwheel.workers.channels import ProcessWorkerChannel
from cartwheel.workers.inheritance import change_environment, free_inherited
from cartwheel.workers.retirement import flush_streams
from cartwheel.workers.serving.worker import Worker
from cartwheel.workers.stderr import keep_stderr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.workers.channels import LocalWorkerChannel
    from cartwheel.workers.restart_policy import RestartPolicy


def serve_thread(
    worker: Worker, channel: LocalWorkerChannel, index: int, env_fns: Sequence[EnvFn], *, spin: bool
) -> None:
    """Runs a worker on this thread until it is closed."""
    name_this_thread(f"cartwheel-w{index}")
    try:
        worker.introduce(env_fns)
        memory, make_shard = channel.receive()
        serve(memory, index, make_shard(worker), spin=spin)
    except EOFError:  # the caller hung up
        worker.close()
    except BaseException as error:  # an exception of a thread would go unnoticed
        worker.fail(error)
    finally:
        channel.hang_up()  # the caller must not wait for more messages


def serve_process(
    end: socket,
    other: socket | None,
    index: int,
    first_row: int,
    env_fns: Sequence[EnvFn] | None,
    *,
    parent: int,
    is_spawned: bool,
    spin: bool,
    restart_policy: RestartPolicy,
) -> None:
    """Runs a worker in this process, which was started for it, until the worker is closed.

    Args:
        end: The worker's end of its socket pair.
        other: The other end, if a fork copied it into this process.
        index: The index of the worker.
        first_row: The row of its first environment.
        env_fns: The functions that make its environments, if a fork copied them into this process;
            otherwise the first message has them, pickled.
        parent: The process that started it.
        is_spawned: Whether a program was started for the process.
        spin: Whether the worker may spin before it sleeps.
        restart_policy: How failures of environments are handled.
    """
    if other is not None:
        # A collection writes to every object that it visits, and what is written to is no longer
        # shared with the caller: it would copy all objects of the caller into every worker.
        gc.freeze()
        other.close()
        free_inherited()
        # A thread of the program may have held it at the fork.
        cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_LOCK = threading.Lock()
    # Threads of the program, which a fork does not copy, but Python would join at the end.
    futures = sys.modules.get("concurrent.futures.thread")
    getattr(futures, "_threads_queues", {}).clear()
    change_environment()
    # Ctrl-C goes to every process of the terminal, but only the caller handles it. Programs that
    # environments start do not inherit an empty handler, but would inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda *_: None)
    channel = ProcessWorkerChannel(Descriptor(end.detach()))
    worker = Worker(channel, first_row, is_remote=True, restart_policy=restart_policy)
    try:
        first = channel.receive_bytes()
        watch_parent(parent, channel.take_descriptor())
        keep_stderr(channel.take_descriptor())
        if restart_policy.retires:
            worker.may_retire(channel.take_descriptor())
        worker.introduce(first if env_fns is None else env_fns)
        plan, shard, resumed = channel.receive()
        descriptors = [channel.take_descriptor() for _ in range(4)]
        memory = worker.memory = Memory(**plan, descriptors=descriptors)
        if resumed is not None:
            channel.announced = resumed.pop("announced")
            worker.resume(**resumed)
        serve(memory, index, Shard(worker, **shard), spin=spin)
    except EOFError:  # the caller gave up
        worker.close()
    except BaseException as error:
        if worker.serving:
            raise  # the caller does not wait for a message: it finds this process dead
        worker.fail(error)
        channel.close()
    if is_spawned:
        atexit.register(_end_spawned_process)


def _end_spawned_process() -> None:
    """Ends this process when its interpreter is about to end, as ``multiprocessing`` ends others.

    The end of the interpreter would destroy what modules have, which the system frees at once. With
    PyTorch that takes a second of a processor, so that workers of a busy machine would be killed
    before they ended. The process does not end before its function has returned, because tools such
    as coverage.py write what they measured then.
    """
    atexit.unregister(_end_spawned_process)
    atexit._run_exitfuncs()  # all others, whether they were registered earlier or later
    flush_streams()
    os._exit(0)
