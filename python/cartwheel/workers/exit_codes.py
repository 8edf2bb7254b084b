"""Exit codes of worker processes that several threads ask for at once."""

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing.connection import wait
from typing import Any


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
        if flag != os.WNOHANG and self.returncode is None:
            self._wait()  # without the lock, so that others do not wait for as long
        with self.lock:
            code = read.poll(flag)
            return code

    def _wait(self) -> None:
        """Waits for the end of the process, and leaves its exit code."""
        if self.method == "forkserver":
            wait([self.sentinel])
        elif hasattr(os, "waitid"):  # children of the process may hold the sentinel longer
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


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
