"""File descriptors of worker processes: so many a worker, whatever it has to step."""

from __future__ import annotations

import errno
import os
import resource

#: The socket, pidfd and last lines of a worker, and the two pipes that ``multiprocessing`` keeps.
_EACH = 5
#: The memory's four, and what is open for a moment: to start a process, to read the limits.
_TOGETHER = 16


def require_descriptors(num_workers: int) -> None:
    """Checks that this process may open what ``num_workers`` worker processes need.

    Before the first of them is started, because ``multiprocessing`` leaves pipes open when it finds
    too few descriptors.

    Raises:
        OSError: With ``EMFILE``: it may not.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = limit - sum(int(name) < limit for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    needed = _EACH * num_workers + _TOGETHER
    if left < needed and limit != resource.RLIM_INFINITY:
        raise OSError(
            errno.EMFILE,
            f"{num_workers} worker processes need {needed} file descriptors and {left} are left of "
            f"{limit}: allow more (`ulimit -n`), or use fewer workers (`num_workers`)",
        )
