"""Workers that died, hang or were not started: the exceptions for the caller, and their causes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from cartwheel.errors import WorkerDiedError, WorkerTimeoutError, row_range
from cartwheel.workers.channels import Deadline

#: Exit code of a worker process that found no ``if __name__ == "__main__":`` in the main module.
NO_MAIN_GUARD = 83
#: Exit codes of processes that ended normally, were killed by their pool, or are explained
#: elsewhere; ``None`` if SIGCHLD is ignored.
EXPECTED_EXITS = (0, -signal.SIGKILL, NO_MAIN_GUARD, None)
_WITHOUT_MAIN_GUARD = (
    'is `if __name__ == "__main__":` missing? A worker process imported the main module of the '
    "program, and the module made environments once more. Put the code that makes and steps "
    "environments under that line"
)
_OR_FORK = ", or use context='fork'"


@dataclasses.dataclass(frozen=True)
class WorkerRows:
    """A worker and its rows, as messages name them.

    Attributes:
        worker: The index of the worker.
        rows: Its rows.
    """

    worker: int
    rows: range

    def __str__(self) -> str:
        return f"worker {self.worker} ({row_range(self.rows[0], self.rows[-1])})"


def thread_died(who: WorkerRows, phase: str) -> WorkerDiedError:
    """Returns the exception for a thread that ended before it answered."""
    return WorkerDiedError(
        f"{who}, a thread, ended during {phase}",
        worker=who.worker,
        env_index=list(who.rows),
        pid=os.getpid(),
        exitcode=None,
        phase=phase,
    )


def process_died(
    who: WorkerRows, process: Any, phase: str, *, start: Any, may_fork: bool, stderr: str
) -> WorkerDiedError:
    """Returns the exception for a process that ended before it answered.

    Args:
        who: The worker.
        process: Its process.
        phase: The phase in which it ended.
        start: The function that started it, with its ``multiprocessing`` context.
        may_fork: Whether the exception may advise the start method ``fork``.
        stderr: Its last lines on stderr.
    """
    if process.exitcode is None:  # with a limit, because `join` waits for its children, too
        process.join(1.0)
    rows = who.rows
    name = f"worker {who.worker} ({row_range(rows[0], rows[-1])}, pid {process.pid})"
    message = f"{name} died during {phase}: {described_exit(process.exitcode)}"
    message = _with_cause(message, process.exitcode, phase, start, may_fork=may_fork)
    return WorkerDiedError(
        message + quoted(stderr),
        worker=who.worker,
        env_index=list(rows),
        pid=process.pid,
        exitcode=process.exitcode,
        phase=phase,
        stderr=stderr,
    )


def _with_cause(
    message: str, exitcode: int | None, phase: str, start: Any, *, may_fork: bool
) -> str:
    """Adds why a process ended, or the fork server, if it is the main module of the program."""
    or_fork = _OR_FORK if may_fork else ""
    if exitcode == NO_MAIN_GUARD:
        return _WITHOUT_MAIN_GUARD + or_fork
    if phase == "construct":
        cause = _without_main_file(start.context)
        message += cause and cause + or_fork
    return message


def not_started(
    who: WorkerRows, pid: int, exitcode: int, *, start: Any, may_fork: bool
) -> WorkerDiedError:
    """Returns the exception for a worker that an ended fork server did not start.

    Args:
        who: The worker.
        pid: The process id of the server.
        exitcode: Its exit code.
        start: As for :func:`process_died`.
        may_fork: As for :func:`process_died`.
    """
    message = (
        f"{who} was not started: the fork server, pid {pid}, imported the main "
        f"module of the program, and {described_exit(exitcode)}"
    )
    return WorkerDiedError(
        _with_cause(message, exitcode, "construct", start, may_fork=may_fork),
        worker=who.worker,
        env_index=list(who.rows),
        pid=pid,
        exitcode=exitcode,
        phase="construct",
    )


def hung(who: WorkerRows, pid: int, phase: str, seconds: float | None) -> WorkerTimeoutError:
    """Returns the exception for a worker process that was killed because it hung."""
    return WorkerTimeoutError(
        f"{who}, pid {pid}, made no progress in `{phase}` for {seconds:g} second(s) and was killed",
        env_index=list(who.rows),
        workers=[who.worker],
    )


def stopped(who: WorkerRows, seconds: float) -> WorkerTimeoutError:
    """Returns the exception for a process that does not send what it has announced."""
    return WorkerTimeoutError(
        f"{who} has announced an exception, infos or answers, and has not "
        f"sent them for {seconds:g} second(s): its process was stopped. The results "
        "of this call are lost: reset or close",
        env_index=list(who.rows),
        workers=[who.worker],
        results_lost=True,
    )


def not_ended(who: WorkerRows, pid: int, seconds: float) -> WorkerTimeoutError:
    """Returns the exception for a process that runs on although it was killed."""
    return WorkerTimeoutError(
        f"{who}, pid {pid}, was killed and has not ended for {seconds:g} second(s): the system "
        "does not end a process that waits for a disk or a file server that does not answer",
        env_index=list(who.rows),
        workers=[who.worker],
    )


def ended_server() -> tuple[int, int] | None:
    """Returns id and exit code of the fork server, which refused a connection, if it has ended.

    Python 3.14 lets it import the main module of the program, at which it ends if that fails.
    """
    server = sys.modules.get("multiprocessing.forkserver")
    pid = getattr(getattr(server, "_forkserver", None), "_forkserver_pid", None)
    if pid is None or not hasattr(os, "waitid"):
        return None
    deadline = Deadline(1.0)  # it closes its socket a moment before it has ended
    with contextlib.suppress(ChildProcessError):  # it is the child of another process
        while deadline.left():
            # Without taking the exit code, for which `multiprocessing` will ask.
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if ended is not None:
                by_itself = ended.si_code == os.CLD_EXITED
                return pid, ended.si_status if by_itself else -ended.si_status
            time.sleep(0.01)
    return None


def _without_main_file(context: Any) -> str:
    """Returns the cause if worker processes cannot import the main module, and ``""`` if they can.

    As a program that Python reads from stdin, or whose file is gone.
    """
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    imported_by_name = getattr(main, "__spec__", None) is not None
    if context.get_start_method() == "fork" or imported_by_name or path is None:
        return ""
    if Path(path).exists():
        return ""
    return (
        ". A worker process imports the main module of the program, and "
        f"there is no file {path!r}: save the program as a file"
    )


def quoted(stderr: str) -> str:
    """Returns the last lines on stderr as the end of an error message."""
    return f". Its last lines on stderr:\n{textwrap.indent(stderr, '  ')}" if stderr else ""


def described_exit(exitcode: int | None) -> str:
    """Describes how a process ended."""
    if exitcode is None:
        return "its exit code is unknown"
    if exitcode >= 0:
        return f"it exited with code {exitcode}"
    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    hints = {
        "SIGKILL": "; the system may have run out of memory, see the kernel's log",
        "SIGBUS": "; shared memory may have run out",
    }
    return f"it was ended by {name}{hints.get(name, '')}"
