"""The replacement of a worker process that has ended by one that makes new environments.

``workers/callbacks.py`` decides whether a worker is replaced, and native code repeats its work.
"""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import cache_draws
from cartwheel.errors import WorkerTimeoutError, named_rows
from cartwheel.workers.channels import Deadline

if TYPE_CHECKING:
    from cartwheel.workers.group import WorkerGroup
    from cartwheel.workers.serving.row_state import ResetCache


def restart(
    group: WorkerGroup,
    worker: int,
    over: list[bool],
    resets: dict[int, dict[str, Any]],
    announced: int,
    timeout: float | None,
) -> int:
    """Replaces an ended worker process with a new one, which makes new environments.

    The process of a worker that was never started is started likewise.

    Args:
        group: The workers.
        worker: The index of the worker.
        over: For each of its rows, whether the episode was over.
        resets: The keywords of resets that were sent, by row, counted from the worker's first.
        announced: The new process numbers its announced messages after this number.
        timeout: Seconds that the construction may take.

    Returns:
        The process id of the new process.

    Raises:
        WorkerDiedError: The new process died too.
        WorkerTimeoutError: The construction took longer than ``timeout``.
        RuntimeError: The spaces of the new environments differ from the old ones.
        Exception: An environment function raised it.
    """
    assert group.setup is not None, "only workers that have served are restarted"
    left = group.retired.get(worker)
    group.reported.discard(worker)
    group.reap(worker)
    group.start(worker, announced)
    process = group.processes[worker]
    try:
        deadline = Deadline(timeout)
        _check_same(group, worker, _received(group, worker, deadline))
        continue_with(group, worker, over, resets, announced, deadline, left)
    except BaseException:
        group.kill(worker)
        raise
    group.retired.pop(worker, None)
    pid: int = process.pid
    return pid


def continue_with(
    group: WorkerGroup,
    worker: int,
    over: list[bool],
    resets: dict[int, dict[str, Any]],
    announced: int,
    deadline: Deadline,
    left: dict[str, Any] | None = None,
) -> None:
    """Lets a process that has described its environments serve, as :func:`restart` does.

    Args:
        group: The workers.
        worker: The index of the worker.
        over: As for :func:`restart`.
        resets: As for :func:`restart`.
        announced: As for :func:`restart`.
        deadline: The end of the construction.
        left: What a process that retired left.
    """
    assert group.setup is not None, "there is memory"
    memory, *_ = group.setup
    first, last = group.shards[worker]
    rollouts = memory.rollouts()
    resumed = {
        "rollouts": [rollout[:2] for rollout in rollouts],
        "resets": resets,
        "announced": announced,
        "cached": _cached(group, worker),
        "left": left,
        "drawn": [row - first for row in group.drawn if first <= row < last],
    }
    descriptors = [descriptor for *_, descriptor in rollouts]
    group.hand_over(worker, over, resumed, descriptors)
    _received(group, worker, deadline)


def _cached(group: WorkerGroup, worker: int) -> list[tuple[ResetCache, tuple[int, int]]] | None:
    """Returns the cache for the rows of a restarted worker: with new draws after a failure."""
    cache, restarts = group.cache, group.restarts[worker]
    if cache is None:
        return None
    if worker in group.retired:
        return [(cache, group.retired[worker]["draw"])]
    seeds = (row << 64 | restarts << 32 for row in range(*group.shards[worker]))
    return [(cache, (cache_draws(cache.key, seed), 0)) for seed in seeds]


def _received(group: WorkerGroup, worker: int, deadline: Deadline) -> dict[str, Any]:
    try:
        message: dict[str, Any] = group.receive(worker, "construct", deadline.left())
    except multiprocessing.TimeoutError:
        rows = list(range(*group.shards[worker]))
        raise WorkerTimeoutError(
            f"the construction of {named_rows(rows)}, whose worker process had died, has timed "
            f"out after {deadline.seconds} second(s)",
            env_index=rows,
            workers=[worker],
        ) from None
    group.check(worker, message)
    return message


def _check_same(group: WorkerGroup, worker: int, description: dict[str, Any]) -> None:
    """Checks that the environments of a restarted worker have the same spaces as before.

    Agents must be in the same order, too: they are columns.
    """
    for kind, what in (("spaces", "spaces"), ("layouts", "agents")):
        if description[kind] != group.descriptions[worker][kind]:
            raise RuntimeError(f"the {what} of {group.named(worker)} changed when it was restarted")
