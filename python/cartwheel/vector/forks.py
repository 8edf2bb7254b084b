"""Batches after a fork of the program.

A batch of observations that worker processes wrote is shared memory, and a forked child would share
it too. So in the child the batches become its own, with the contents that they had; and in the
parent those that were held at that moment are never written again, so that the child's stay what
they are. One thing is left: what the parent itself writes into such an array afterwards shows in
the child, as long as the child has not written there (a page at a time). Take a copy where that
matters.

A rollout that is being recorded goes on in the parent, in the arrays that the parent holds. What
was recorded before the fork stays what it is in the child, but for the first batch, if a reset
before the first step replaces it. What has not been recorded yet has no meaning in the child, now
or later: entries of later steps may show results of the parent's steps.

The memory of batches that the parent held when it forked is not used again until the vector
environment is closed: a program that forks often does it best while it holds no batch. Forks that
start worker processes are no exception, since an environment function may refer to such a batch;
where nothing is held, they cost nothing.

Forks by code that is no Python (``fork`` of the C library) go unnoticed. The memory of the
executors ``thread`` and ``inline`` is private, as any other.
"""

from __future__ import annotations

import os
import weakref

from cartwheel._cartwheel import Pool, fork_begins, fork_ended, fork_ended_in_child
from cartwheel.log import LOGGER

#: Pools whose memory is shared with worker processes.
_sharing: weakref.WeakSet[Pool] = weakref.WeakSet()


def part_on_fork(pool: Pool) -> None:
    """Makes the batches of ``pool`` the child's own in every child that is forked from now on."""
    _sharing.add(pool)


def _part() -> None:
    fork_ended_in_child()
    for pool in list(_sharing):
        try:
            pool.part()
        except (MemoryError, OSError):  # noqa: PERF203 - the others are parted
            LOGGER.exception("batches stay shared with the parent process")


os.register_at_fork(
    before=fork_begins,
    after_in_parent=fork_ended,
    after_in_child=_part,
)
