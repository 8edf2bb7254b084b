"""Worker threads that were inside an environment when their vector environment was closed."""

from __future__ import annotations

import weakref
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from cartwheel.worker.deadline import Deadline

if TYPE_CHECKING:
    import threading

#: Seconds that all of them get together when the program ends, to return and to close environments.
#: A thread that needs longer never returns: native code lets it hang until the process is gone.
_GRACE = 1.0
_late: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def await_at_exit(thread: threading.Thread) -> None:
    """Waits for ``thread`` when the program ends, if it still runs then."""
    _late.add(thread)


def _await_all() -> None:
    deadline = Deadline(_GRACE)
    for thread in list(_late):
        thread.join(deadline.left())


# The last of the finalizers with a priority: others close vector environments.
Finalize(None, _await_all, exitpriority=0)
