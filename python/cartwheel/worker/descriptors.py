"""The number of file descriptors that worker processes need."""

from __future__ import annotations

import errno
import os
import resource
import sys

#: Where the system lists the open descriptors: Linux, and macOS.
_LISTED = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
#: For each worker: its socket, a pidfd, its last lines, and two pipes of ``multiprocessing``.
_EACH = 5
#: For all: four of the memory, two of a pipe, and some that are open briefly, as while a process
#: starts.
_TOGETHER = 16


def require_descriptors(num_workers: int) -> None:
    """Checks that this process may open as many descriptors as the workers need.

    The check comes before the first worker is started, because ``multiprocessing`` leaves pipes
    open when it runs out of descriptors.

    Raises:
        OSError: Too few descriptors are left; ``errno`` is ``EMFILE``.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = limit - sum(int(name) < limit for name in os.listdir(_LISTED))  # noqa: PTH208
    needed = _EACH * num_workers + _TOGETHER
    if left < needed and limit != resource.RLIM_INFINITY:
        raise OSError(
            errno.EMFILE,
            f"{num_workers} worker processes need {needed} file descriptors and {left} are left of "
            f"{limit}: allow more (`ulimit -n`), or use fewer workers (`num_workers`)",
        )
