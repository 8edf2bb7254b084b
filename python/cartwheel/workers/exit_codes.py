"""The end of worker processes, and their exit codes, which several threads may ask for at once."""

from __future__ import annotations

import os
import threading
import time
from multiprocessing.connection import wait
from typing import Any

from cartwheel._internal.process import slices

#: Seconds for the end of a process that was killed. The system frees its memory first.
KILLED_S = 10.0


class _OneByOne:
    """The part of a ``Popen`` of ``multiprocessing`` that reads the exit code, by one thread."""

    method: str
    pid: int
    returncode: int | None
    sentinel: int
    lock: threading.RLock
    owner: int

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Returns the exit code; ``None`` if the process has not ended."""
        read: Any = super()
        if os.getpid() != self.owner:  # a thread that holds the lock may not exist in this process
            code: int | None = read.poll(flag)
            return code
        with self.lock:
            code = read.poll(flag)
            return code

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for the end of the process, without the lock; returns the exit code, if known."""
        for left in slices(timeout):
            if self.has_ended():
                break
            if wait([self.sentinel], left):  # it ends now, or its environment has closed the pipe
                time.sleep(min(left, 0.001))
        return self.poll()

    def has_ended(self) -> bool:
        """Whether the process has ended; its exit code may be unknown then.

        While SIGCHLD is ignored, the system keeps no exit code, and ``multiprocessing`` considers
        the process alive forever.
        """
        if self.returncode is not None:
            return True
        if self.method == "forkserver" or not hasattr(os, "waitid"):
            return bool(wait([self.sentinel], 0))
        try:  # children of the process may hold the sentinel longer
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:
            return True


#: By the class of ``multiprocessing``, for each start method.
_kinds: dict[type, type] = {}


def read_by_one_thread(process: Any) -> None:
    """Lets threads ask for the exit code of a process that was just started at the same time.

    ``multiprocessing`` asks all child processes whenever a thread starts one. If another thread
    asks at that moment, both read. What the fork server sends can be read once, and the second
    thread finds the end of a pipe, which counts as code 255; a forked child can be waited for once,
    and the second thread learns that there is none: it cannot close the process, whose descriptors
    stay open.
    """
    popen = process._popen
    popen.lock, popen.owner = threading.RLock(), os.getpid()
    kind = type(popen)
    if kind not in _kinds:
        _kinds[kind] = type(kind.__name__, (_OneByOne, kind), {})
    popen.__class__ = _kinds[kind]


def kill(process: Any, seconds: float | None) -> bool:
    """Kills a process, unless it has ended; returns whether it has ended within ``seconds``.

    Its id may belong to another process once it has ended. One that waits in the system, as for a
    disk that does not answer, cannot be killed before that ends.
    """
    if not process._popen.has_ended():
        process.kill()
        process.join(seconds)
    ended: bool = process._popen.has_ended()
    return ended
