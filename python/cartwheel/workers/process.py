"""The start of a worker process."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing.process
import os
import socket
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import Descriptor
from cartwheel._internal.weak_set import ConcurrentWeakSet
from cartwheel.workers.channels import ProcessChannel
from cartwheel.workers.deaths import NO_MAIN_GUARD
from cartwheel.workers.exit_codes import KILLED_S, read_by_one_thread
from cartwheel.workers.inheritance import changed_for_programs
from cartwheel.workers.retirement import Handoff
from cartwheel.workers.serving.serve import serve_process
from cartwheel.workers.stderr import Stderr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.arguments import EnvFn
    from cartwheel.workers.restart_policy import RestartPolicy

#: The beginning of the names of worker processes.
_NAME = "Worker<"
#: A pipe whose second end this process holds until it ends or executes another program. Workers
#: watch the first end, and end then, too.
_lifelines: list[tuple[Descriptor, Descriptor]] = []
#: The worker processes of this process.
_workers: ConcurrentWeakSet[Any] = ConcurrentWeakSet()


def _forget_in_child() -> None:
    """Forgets what a forked child has not got: the end of the pipe, and the workers.

    Workers are not children of the child, but ``multiprocessing`` keeps them in its list of
    children there, and would terminate them when the child ends.
    """
    _lifelines.clear()
    children: set[Any] = getattr(multiprocessing.process, "_children", set())
    children.difference_update(_workers)
    _workers.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def lifeline() -> Descriptor:
    """Returns the end of the pipe by which worker processes detect the end of this process."""
    if not _lifelines:
        watched, held = os.pipe()
        _lifelines.append((Descriptor(watched), Descriptor(held)))
    return _lifelines[0][0]


def check_can_start(remedy: str = "") -> None:
    """Raises if this process cannot start worker processes.

    With ``spawn`` and ``forkserver`` a worker imports the main module of the program first, or the
    server does, in newer versions of Python. If the module makes a vector environment when it is
    imported, the worker would start workers of its own. Such a worker exits here silently, and the
    server with one line; the program explains the exit code.

    Args:
        remedy: What a daemonic process may do instead, for the error.

    Raises:
        RuntimeError: This process is daemonic, or is importing the main module of its parent.
    """
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # as `multiprocessing.spawn` checks it
        if process.name == "MainProcess":  # the server, which the program may need for other things
            text = "the fork server ends: the main module of the program makes environments\n"
            os.write(2, text.encode())
            os._exit(NO_MAIN_GUARD)
        if process.name.startswith(_NAME):
            os._exit(NO_MAIN_GUARD)
        raise RuntimeError(
            "this process imports the main module of the program that started it, and the module "
            'makes environments: put that code under `if __name__ == "__main__":`'
        )
    if process.daemon:
        raise RuntimeError(
            f"this process ({process.name}) is daemonic and may have no child processes: {remedy}"
            "start this process with daemon=False"
        )


@dataclasses.dataclass(frozen=True)
class StartProcess:
    """Starts worker processes: the first ones, and replacements of dead ones.

    Attributes:
        shards: For each worker, its first row and the row after its last.
        parts: For each worker, its part of ``env_fns``; pickled unless processes are forked.
        name: The class of the vector environment.
        context: The ``multiprocessing`` context.
        daemon: Whether the processes are daemonic.
        spin: Whether the workers may spin before they sleep.
        restart_policy: How failures of environments are handled.
    """

    shards: list[tuple[int, int]]
    parts: list[bytes | Sequence[EnvFn]]
    name: str
    context: Any
    daemon: bool
    spin: bool
    restart_policy: RestartPolicy

    def __call__(self, index: int) -> tuple[Any, ProcessChannel]:
        """Starts worker ``index``, while this thread holds ``inheritance.starting``.

        Returns:
            The process and the caller's end of its channel.
        """
        caller_end, worker_end = socket.socketpair()
        method = self.context.get_start_method()
        forks = method == "fork"
        part = self.parts[index]
        process = self.context.Process(
            target=serve_process,
            args=(
                worker_end,
                caller_end if forks else None,
                index,
                self.shards[index][0],
                None if isinstance(part, bytes) else part,
            ),
            kwargs={
                "parent": os.getpid(),
                "is_spawned": method == "spawn",
                "spin": self.spin,
                "restart_policy": self.restart_policy,
            },
            name=f"{_NAME}{self.name}>-{index}",
            daemon=self.daemon,
        )
        _workers.add(process)  # before its start, which another thread's fork may interrupt
        try:
            with caller_end, worker_end:
                with contextlib.nullcontext() if forks else changed_for_programs():
                    process.start()
                read_by_one_thread(process)
                channel = ProcessChannel(Descriptor(caller_end.detach()), process.pid)
            channel.stderr = Stderr()
            descriptors = [lifeline(), channel.stderr.descriptor]
            if self.restart_policy.retires:
                channel.handoff = Handoff()
                descriptors.append(channel.handoff.descriptor)
            # Through the channel, which notices that the process ends before it reads, and does not
            # wait here: an argument would be written to a pipe, and `spawn` would wait forever.
            channel.post((part if isinstance(part, bytes) else b"", descriptors))
        except BaseException:
            if process.pid is not None:
                process.kill()
                process.join(KILLED_S)
            raise
        return process, channel
