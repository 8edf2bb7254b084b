"""Batches of observations after a fork of the program.

A batch of observations from worker processes is in shared memory, which a forked child would share
too. So in the child the batches become private copies with the same contents. In the parent,
batches that were held at the time of the fork are never overwritten by workers, so the child's
copies do not change. One case remains: if the parent's own code writes into such an array after the
fork, the child sees the change on every page that the child has not written yet. Copy the array
where that matters.

A rollout that is being recorded continues in the parent, in the arrays that the parent holds. In
the child, the steps that were recorded before the fork do not change, except for the first batch if
a reset before the first step replaces it. Later steps are undefined in the child: their entries may
show results of the parent's steps.

The memory of batches that the parent held at the fork is not used again until the vector
environment is closed, so a program that forks often should hold no batch when it forks. The same
holds for forks that start worker processes, because an environment function may refer to such a
batch. A fork without held batches costs nothing.

Forks by other code than Python (``fork`` of the C library) are not noticed. The memory of the
executors ``thread`` and ``inline`` is private like any other memory of the process.
"""

from __future__ import annotations

import os

from cartwheel._cartwheel import Pool, fork_begins, fork_ended, fork_ended_in_child
from cartwheel._internal.logging import LOGGER
from cartwheel._internal.weak_set import ConcurrentWeakSet

#: Pools whose memory is shared with worker processes.
_sharing: ConcurrentWeakSet[Pool] = ConcurrentWeakSet()


def make_private_on_fork(pool: Pool) -> None:
    """Makes the batches of ``pool`` private in every child that is forked from now on."""
    _sharing.add(pool)


def _make_private() -> None:
    fork_ended_in_child()
    for pool in _sharing:
        try:
            pool.make_private()
        except (MemoryError, OSError):  # the other pools are still made private
            LOGGER.exception("batches stay shared with the parent process")


os.register_at_fork(before=fork_begins, after_in_parent=fork_ended, after_in_child=_make_private)
