"""The number of file descriptors that worker processes need."""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading

#: Where the system lists the open descriptors: Linux, and macOS.
_LISTED = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
#: For each worker: its socket, two pidfds, its last lines, and two pipes of ``multiprocessing``.
_EACH = 6
#: For all: four of the memory, two of a pipe, and some that are open briefly, as while a process
#: starts.
_TOGETHER = 16


#: Threads that make vector environments at the same time raise the limit in turn.
_raising = threading.Lock()


def require_descriptors(num_workers: int) -> None:
    """Makes sure that this process may open as many descriptors as the workers need.

    If the soft limit is too low, it is raised to what is needed, where the hard limit allows that.
    It stays raised, for workers too: a worker that is restarted needs descriptors at any time.

    The check comes before the first worker is started, because ``multiprocessing`` leaves pipes
    open when it runs out of descriptors.

    Raises:
        OSError: Too few descriptors are left; ``errno`` is ``EMFILE``.
    """
    with _raising:
        limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = sum(int(name) < limit for name in os.listdir(_LISTED))  # noqa: PTH208
        needed = _EACH * num_workers + _TOGETHER
        if limit == resource.RLIM_INFINITY or taken + needed <= limit:
            return
        if hard != resource.RLIM_INFINITY and taken + needed > hard:
            raise OSError(
                errno.EMFILE,
                f"{num_workers} worker processes need {needed} file descriptors and {hard - taken} "
                f"are left of {hard}: allow more (`ulimit -n`), or use fewer workers "
                "(`num_workers`)",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + needed, hard))
