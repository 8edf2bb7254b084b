"""Environment variables, memory and descriptors that worker processes inherit.

Thread pools of numerical libraries have one thread in each worker, unless the user has set their
size. Variables by which MPI would take a worker for one of its own processes are removed.

Worker processes are started one after the other, whichever threads start them: until a start is
over, this process has descriptors, and perhaps variables, that no other worker may inherit.

``os.environ`` of the caller never changes: another thread that reads it meanwhile would raise
``KeyError``. A forked process changes its own. A process that starts a program reads the variables
before any code of cartwheel runs there. So they are set around the start, in the environment of the
C library, which ``os.environ`` does not show.

A forked worker frees the memory and the sockets of the vector environments that were open in its
parent. Otherwise they would stay until the last such worker ends. Arrays that an environment
function refers to stay valid.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import TYPE_CHECKING, Protocol

from cartwheel._internal.process import process_lock

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
#: Prefixes that ``gymnasium.vector.utils.clear_mpi_env_vars`` removes.
_MPI = ("OMPI_", "PMI_")


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


def _change_back() -> None:
    """Gives the C library what ``os.environ`` has, which another thread may have changed."""
    for name in _missing():
        os.unsetenv(name)
    for name, value in _mpi().items():
        os.putenv(name, value)


#: Held from the first descriptor of a worker until its group has what a forked worker closes.
starting = process_lock(if_held=_change_back)


@contextlib.contextmanager
def changed_for_programs() -> Iterator[None]:
    """Sets the variables for programs that this process starts in the block."""
    with starting:
        for name in _missing():
            os.putenv(name, "1")
        for name in _mpi():
            os.unsetenv(name)
        try:
            yield
        finally:
            _change_back()


class Holder(Protocol):
    """A pool or a worker group, which holds memory or descriptors."""

    def abandon(self) -> None:
        """Frees what a forked worker inherited of this object."""


#: By id, because worker groups are compared by value.
_holders: weakref.WeakValueDictionary[int, Holder] = weakref.WeakValueDictionary()


def free_in_workers(holder: Holder) -> None:
    """Registers memory that workers free if they are forked from now on."""
    _holders[id(holder)] = holder


def free_inherited() -> None:
    """Frees all memory that this forked worker inherited."""
    inherited = list(_holders.values())
    _holders.clear()  # a worker that this one forks must not close the same descriptors again
    for holder in inherited:
        holder.abandon()
