"""The environment variables of worker processes.

Workers get one thread for each pool of a numerical library, unless the user has set its size, and
none of the variables by which MPI would take them for a process of its own.

``os.environ`` of the caller never changes: another thread that reads it meanwhile would raise
``KeyError``. A process that is forked changes its own. One that starts a program anew reads the
variables before any code of ours runs there. So they are set around the start, in the environment
that the C library passes on, which ``os.environ`` does not show.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Sizes of thread pools of numerical libraries.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
#: As ``gymnasium.vector.utils.clear_mpi_env_vars`` has them.
_MPI = ("OMPI_", "PMI_")
#: Held while the environment of the C library differs.
_changed = threading.Lock()


def _renew_lock() -> None:
    """A thread that held the lock at a fork does not exist in the child."""
    global _changed
    _changed = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _missing() -> list[str]:
    return [name for name in _THREADS if name not in os.environ]


def _mpi() -> dict[str, str]:
    found = {name: os.environ.get(name) for name in list(os.environ) if name.startswith(_MPI)}
    return {name: value for name, value in found.items() if value is not None}


def change_environment() -> None:
    """Sets the variables of this worker process."""
    os.environ.update(dict.fromkeys(_missing(), "1"))
    for name in _mpi():
        del os.environ[name]


@contextlib.contextmanager
def changed_for_programs() -> Iterator[None]:
    """Sets the variables that programs inherit that this process starts in the block."""
    with _changed:
        missing, mpi = _missing(), _mpi()
        for name in missing:
            os.putenv(name, "1")
        for name in mpi:
            os.unsetenv(name)
        try:
            yield
        finally:
            for name in missing:
                os.unsetenv(name)
            for name, value in mpi.items():
                os.putenv(name, value)
