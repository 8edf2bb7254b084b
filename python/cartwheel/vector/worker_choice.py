"""The number of workers for ``num_workers="auto"``: one environment is measured, and it follows.

Environments that compute need a worker for each processor. Those that wait, for a server, a GPU or
a sleep, leave processors idle unless there are more workers. ``cores / cpu_share`` workers keep the
processors busy if another worker computes whenever one waits. Often none does, so twice as many are
started: a worker that waits costs memory and start-up, but no processor time. A worker also waits
where processes that its environment has started compute: with one for each processor, that one
would be idle whenever such a process has answered and the next one has not been asked yet.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import sys
from typing import TYPE_CHECKING, Any

from cartwheel._cartwheel import memory_left, usable_cpus
from cartwheel._internal.logging import log_event
from cartwheel.errors import WorkerDiedError, WorkerTimeoutError, noted
from cartwheel.workers.launch import affordable_workers
from cartwheel.workers.serving.trial import MakesTrial, Measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel._internal.arguments import EnvFn
    from cartwheel._internal.literals import Executor
    from cartwheel.workers.channels import Deadline

#: Seconds for which the environment is stepped.
_TRIAL_S = 0.5
#: From this share of its own processor time on, a worker counts as computing.
_COMPUTES = 0.9
#: Workers for each one that would be enough if another one always computed while one waits.
_SPARE = 2
#: The part of the memory that is left, and that workers may use.
_MEMORY_SHARE = 0.8


@dataclasses.dataclass(frozen=True)
class WorkerChoice:
    """The number of workers that ``num_workers="auto"`` chose, and why.

    Attributes:
        num_workers: The number of workers.
        reason: What decided, as a sentence.
        start_up: Seconds that a process needed for the environment's function, its first reset and
            its first step; ``None``, as all that follow, if no environment was measured.
        steps: Steps that were measured.
        seconds: Seconds of these steps, and of the resets between them.
        cpu_share: The part of these seconds for which a processor was used, by the environment and
            the processes that it started: from 0, it only waits, to 1, it only computes.
        memory: Bytes of a worker process with one environment, and of the processes that it
            started; 0 with ``executor="thread"``.
    """

    num_workers: int
    reason: str
    start_up: float | None = None
    steps: int | None = None
    seconds: float | None = None
    cpu_share: float | None = None
    memory: int | None = None


def choose_workers(
    vector_env: Callable[..., Any],
    env_fn: EnvFn,
    num_envs: int,
    limit: int,
    *,
    executor: Executor,
    context: Any,
    daemon: bool,
    retires: bool,
    deadline: Deadline,
) -> WorkerChoice:
    """Measures one environment, unless the number of workers does not depend on it.

    The environment is made in a worker of its own, so that it has the conditions of the others and
    no effect on them, and is closed before they are made.

    Args:
        vector_env: Starts this worker: the class ``VectorEnv``, which uses this file.
        env_fn: The function of the environment.
        num_envs: The number of environments.
        limit: The maximum number of workers.
        executor: Where environments run.
        context: The start method of processes.
        daemon: Whether processes are daemonic.
        retires: Whether workers are replaced between two episodes.
        deadline: When the construction of all environments must be over.

    Raises:
        Exception: The environment cannot be made.
    """
    cores = usable_cpus()
    if executor == "inline":
        return WorkerChoice(1, "the calling thread steps all environments")
    if retires:
        return WorkerChoice(limit, "a worker that may be replaced has one environment")
    if limit <= cores:
        return WorkerChoice(
            limit, f"there may be at most {limit}, and there are {_processors(cores)}"
        )
    is_remote = executor == "process"
    with noted("raised for the environment that num_workers='auto' measures first"):
        envs = vector_env(
            [MakesTrial(env_fn, is_remote=is_remote)],
            executor=executor,
            context=context,
            daemon=daemon,
            timeout=deadline.left(),
            max_batches=2,
        )
    measured = _measure(envs, deadline.left())
    choice = _choose(measured, cores, num_envs, limit, is_remote=is_remote)
    log_event(
        logging.INFO if measured.failure is None else logging.WARNING,
        f"num_workers='auto': {choice.num_workers} workers, because {choice.reason}",
        event="workers",
        **dataclasses.asdict(choice),
    )
    return choice


def _measure(envs: Any, left: float | None) -> Measured:
    """Measures the environment, for which half of the seconds that are left may be used."""
    timeout = None if left is None else left / 2
    try:
        envs.call_async("measure", _TRIAL_S if timeout is None else min(_TRIAL_S, timeout / 4))
        measured: Measured = envs.call_wait(timeout)[0]
    except BaseException as error:
        envs._finalizer(0.0)  # at once, and without a warning about the pending call
        if isinstance(error, WorkerTimeoutError):
            failure = f"it did not finish a reset and two steps in {timeout:.3g} s"
        elif isinstance(error, WorkerDiedError):
            failure = str(error)
        else:  # Ctrl-C
            raise
        return Measured(0.0, 0, 0.0, 1.0, 1.0, 0, failure)
    envs.close()
    return measured


def _choose(
    measured: Measured, cores: int, num_envs: int, limit: int, *, is_remote: bool
) -> WorkerChoice:
    processors = _processors(cores)
    if measured.failure is not None:
        return WorkerChoice(
            cores,
            f"there are {processors}; the environment that was measured failed: {measured.failure}",
        )
    share = max(measured.cpu_share, 1e-6)
    wanted = cores
    if measured.own_share < _COMPUTES:
        # As many rows for each worker, because a step waits for the last one.
        rows = max(1, round(num_envs * share / (_SPARE * cores)))
        wanted = max(cores, math.ceil(num_envs / rows))
    reason = f"steps compute for {share:.0%} of their time, and there are {processors}"
    if measured.own_share < _COMPUTES <= share:
        reason += "; processes that the environment started compute, and the worker waits for them"
    allowed = limit
    if is_remote:
        left = memory_left()
        by_memory = sys.maxsize if left is None else int(left * _MEMORY_SHARE / measured.memory)
        by_descriptors = affordable_workers()
        allowed = max(cores, min(limit, by_memory, by_descriptors))
        if min(wanted, limit) > allowed:
            reason += (
                f"; more would need more than {_MEMORY_SHARE:.0%} of the memory that is left"
                if by_memory < by_descriptors
                else "; more would need more file descriptors than `ulimit -n` allows"
            )
    return WorkerChoice(
        min(wanted, allowed),
        reason,
        measured.start_up,
        measured.steps,
        measured.seconds,
        measured.cpu_share,
        measured.memory,
    )


def _processors(cores: int) -> str:
    return "1 processor" if cores == 1 else f"{cores} processors"
