"""Collectors in actors of Ray with the interface of one collector."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
import ray
from gymnasium.error import ClosedEnvironmentError

from cartwheel._internal.arguments import (
    as_bool,
    as_integer,
    as_timeout,
    check_dictionary,
    mismatched_signature,
)
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.logging import LOGGER, reminder_s
from cartwheel._internal.process import uninterrupted
from cartwheel._internal.suggestions import shown
from cartwheel.ray.remote_worker import RemoteWorker
from cartwheel.ray.rollout_actor import Plan
from cartwheel.ray.worker_rollout import joined
from cartwheel.ray.worker_stats import WorkerStats
from cartwheel.rollouts.recording import MAX_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartwheel._internal.literals import Until
    from cartwheel._internal.policy import Policy
    from cartwheel.ray.worker_rollout import WorkerRollout

#: Options of actors that users cannot set, and the reason.
_FIXED_OPTIONS = {
    "num_cpus": "pass num_cpus= to RolloutWorkers",
    "max_restarts": "workers are restarted forever",
    "max_task_retries": "a rollout is requested again, with the newest weights",
    "max_concurrency": "a worker makes one rollout after the other",
}


class RolloutWorkers(ClosesAfterWith):
    """Runs a policy in environments of several actors of Ray, and returns their rollouts.

    Example:
        >>> import cartwheel, cartwheel.ray
        >>> def make_env():
        ...     return cartwheel.make_vec("cartwheel/CartPole-v1", 8)
        >>> def make_policy():
        ...     return lambda observations: (observations[:, 2] > 0).astype(int)
        >>> with cartwheel.ray.RolloutWorkers(make_env, make_policy, 2, 16, seed=1) as workers:
        ...     rollout = workers.collect()
        >>> rollout.observations.shape, rollout.rewards.shape
        ((17, 16, 4), (16, 16))

    Each worker is an actor with vector environments, a policy and a :class:`~cartwheel.Collector`.
    Actions are not sent: a worker gets requests for rollouts and returns them as arrays, through
    Ray's object store.

    **As a Collector.** :meth:`collect` returns one rollout of all workers, whose rows are
    the environments of worker 0, then those of worker 1, and so on. With ``weights``, a function
    that returns the learner's weights, it publishes them first, so that all rows are made with
    these weights and a training loop only changes the line that makes its collector. The rows of
    worker ``w`` equal, to the bit, those of a ``Collector`` with the same environments, policy and
    calls, and the seed of the worker.

    **Asynchronously.** :meth:`rollouts` yields rollouts in the order of completion, without a copy,
    while the workers continue. :meth:`update` publishes weights.

    **The policy.** ``policy()`` is called in each worker and returns what a ``Collector`` takes: a
    callable, or an object with ``predict``. If weights are published, it needs a method
    ``set_weights(weights)``, which is called between two rollouts, never during one. Weights can be
    anything that can be pickled; they are put into the object store once a version. NumPy arrays
    in them are read-only there and shared by the workers of a machine. Tensors must be on the CPU
    if a worker has no accelerator.

    **The environments.** ``make_env()`` is called in each worker. It is pickled by cloudpickle,
    like ``policy``: by reference if it can be imported in the workers, otherwise by value with all
    objects that it refers to. A worker is another process, possibly on another machine. Ids that
    the program registered do not exist there: import or register them in ``make_env``. All workers
    must have the same number of environments, spaces and autoreset mode. A worker has as many
    threads or processes for its environments, by default, as Ray has assigned processors to it
    (``num_cpus``), regardless of the machine. In both functions, :func:`~cartwheel.ray.worker_info`
    returns facts about the worker.

    **Seeds.** Row ``i`` of worker ``w`` is reset with ``seed + w * num_envs + i``, where
    ``num_envs`` is that of one worker: the seeds of one ``Collector`` with all rows. After its
    ``k``-th restart, worker ``w`` gets the seeds of worker ``w + k * num_workers``, so that it does
    not repeat its first episodes. Seeds do not depend on which worker is faster.

    **Failures.** If a worker dies, only its rollouts in flight are lost; Ray restarts it
    (``max_restarts=-1``), on another node if its node is gone, as soon as there are resources. It
    makes new environments and a new policy, and gets the newest weights and new requests. The other
    workers continue. An actor that was ended by ``ray.kill`` is replaced. Within an actor, the
    environments' own policies apply (``on_error``, ``on_worker_death``, ``timeout`` of
    :class:`~cartwheel.VectorEnv`). An exception of the policy or of the environments is raised by
    :meth:`collect` or :meth:`rollouts`, with the worker in a note. The worker continues as its
    ``Collector`` does: after an error of the policy with the same rollout, after an error of the
    environments with a reset. Call again to continue; rollouts of other workers are kept. The same
    holds after Ctrl-C.

    If Ray is not initialized, ``ray.init()`` is called, as Ray does by itself: it uses the cluster
    of ``RAY_ADDRESS``, or starts one on this machine that lives as long as the program. One thread
    may use the workers. Leave the ``with`` block, or :meth:`close`, to end them.

    Args:
        make_env: A function without arguments that makes vector environments.
        policy: A function without arguments that makes a policy.
        num_workers: Number of actors.
        num_steps: As for :class:`~cartwheel.Collector`, for each worker.
        until: As for :class:`~cartwheel.Collector`.
        num_episodes: As for :class:`~cartwheel.Collector`, for each worker.
        recurrent: As for :class:`~cartwheel.Collector`.
        seed: An integer, see above; by default environments are seeded by the system.
        options: As for :class:`~cartwheel.Collector`.
        weights: A function without arguments that returns the present weights;
            :meth:`collect` calls it before each rollout.
        num_cpus: Processors of each actor; 0.5 for two actors on one.
        in_flight: The number of rollouts that :meth:`rollouts` requests ahead from each worker.
            With 1, a worker collects one while the loop uses others, and pauses until it is taken.
            With 2, it pauses only when two are waiting, and its weights are older.
        actor_options: Other options of the actors, as for Ray's ``.options(…)``: ``num_gpus``,
            ``resources``, ``runtime_env``, ``scheduling_strategy`` (by default ``"SPREAD"``: over
            the nodes).
        start_timeout: Seconds in which all actors must have started; ``None`` to wait forever,
            such as for nodes to come.

    Raises:
        TypeError: ``make_env``, ``policy`` or ``weights`` is not a function without arguments,
            ``make_env`` did not return a vector environment, ``weights`` are given and the policy
            has no ``set_weights``, ``actor_options`` is not a dictionary, ``recurrent`` is not a
            ``bool``, or ``start_timeout`` is not a number.
        ValueError: A number is out of range, an option of actors cannot be set, or the environments
            of workers differ.
        TimeoutError: Actors have not started in time, mostly because the cluster has too few
            resources; the message has both.
        RuntimeError: An actor's process ended while it made its environments or policy.
        Exception: ``make_env``, ``policy`` or the ``Collector`` raised it in a worker.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        policy: Callable[[], Policy],
        num_workers: int,
        num_steps: int | None = None,
        *,
        until: Until | None = None,
        num_episodes: int | None = None,
        recurrent: bool = False,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        weights: Callable[[], Any] | None = None,
        num_cpus: float = 1,
        in_flight: int = 1,
        actor_options: dict[str, Any] | None = None,
        start_timeout: float | None = 120.0,
    ) -> None:
        """Checks the arguments, starts the actors and waits until all have their environments."""
        self._open = False
        _check_function("make_env", make_env, "makes vector environments in each worker")
        _check_function("policy", policy, "makes the policy in each worker")
        if weights is not None:
            _check_function("weights", weights, "returns the present weights")
        self.num_workers = as_integer("num_workers", num_workers, 1)
        self.in_flight = as_integer("in_flight", in_flight, 1)
        seed = None if seed is None else as_integer("seed", seed, 0)
        if num_steps is not None:
            num_steps = as_integer("num_steps", num_steps, 1, MAX_STEPS)
        check_dictionary("options", options)
        start_timeout = as_timeout(start_timeout, "start_timeout")
        check_dictionary("actor_options", actor_options)
        self._options = _as_options(num_cpus, actor_options or {})
        collector = {
            "num_steps": num_steps,
            "until": until,
            "num_episodes": num_episodes,
            "recurrent": as_bool("recurrent", recurrent),
            "options": options,
        }
        plan = Plan(make_env, policy, self.num_workers, seed, collector)
        self._plan: bytes = cloudpickle.dumps(plan)
        self._new_weights = weights
        #: The version of the newest weights, 0 before the first :meth:`update`.
        self.policy_version = 0
        self._weights: tuple[Any, ...] = ()  # the reference to the weights of this version
        self._workers: list[RemoteWorker] = []
        #: Rollouts that arrived and were not returned, at most one of each worker.
        self._received: dict[int, WorkerRollout] = {}
        self._collecting = False
        self._waited, self._began = 0.0, time.monotonic()
        if not ray.is_initialized():
            ray.init()
        self._session = _session()
        self._open = True
        try:
            for index in range(self.num_workers):
                self._workers.append(RemoteWorker(index, self._plan, self._options))
            self._wait_for_start(start_timeout)
            self._check_alike()
        except BaseException:
            self.close(grace=0)
            self._take_errors()
            raise

    def __repr__(self) -> str:
        first = self._workers[0].description
        return (
            f"RolloutWorkers({self.num_workers} workers × [{first.envs}], {first.policy}, "
            f"version {self.policy_version})"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuses to be pickled or copied: two copies would take each other's rollouts."""
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied: make it anew with the functions "
            "that make environments and policy."
        )

    @property
    def num_envs(self) -> int:
        """The number of environments of all workers together."""
        return self.num_workers * self._workers[0].description.num_envs

    def update(self, weights: Any) -> int:
        """Publishes weights, with which all rollouts are made that are requested from now on.

        They are copied into the object store once. The method does not wait for workers.

        Args:
            weights: The argument of ``set_weights`` of the policy.

        Returns:
            The number of the version, one more than before.

        Raises:
            TypeError: The policy has no method ``set_weights``, or the weights cannot be pickled.
            gymnasium.error.ClosedEnvironmentError: The workers are closed.
        """
        self._check_open()
        self._check_takes_weights()
        # No call comes between the two assignments, and so no Ctrl-C.
        self._weights, self.policy_version = (ray.put(weights),), self.policy_version + 1
        return self.policy_version

    def collect(self) -> WorkerRollout:
        """Collects a rollout in each worker, all with the newest weights, and joins them.

        If ``weights`` was passed to the constructor, it is called for the newest weights. Rollouts
        that :meth:`rollouts` has requested are used if they have this version, and dropped if they
        are older.

        After an exception or Ctrl-C, the next call continues the same rollout, unless
        :meth:`update` was called.

        Returns:
            The rollouts of all workers, joined along the axis of environments in the order of the
            workers. The caller may write into the arrays.

        Raises:
            gymnasium.error.ClosedEnvironmentError: The workers are closed.
            ray.exceptions.RayActorError: A worker died several times in a row.
            Exception: The policy or the environments of a worker raised it.
        """
        self._check_open()
        if self._new_weights is not None and not self._collecting:
            self.update(self._new_weights())
        self._collecting = True
        while missing := [worker for worker in self._workers if self._is_missing(worker)]:
            for worker in missing:
                if self.policy_version not in worker.calls.values():
                    worker.ask(self.policy_version, self._weights)
            self._receive(self._await(missing))
        rollout = joined([self._received[index] for index in range(self.num_workers)])
        self._received, self._collecting = {}, False
        return rollout

    def _is_missing(self, worker: RemoteWorker) -> bool:
        """Whether no rollout of the newest version has arrived; drops one of an older version."""
        rollout = self._received.get(worker.index)
        if rollout is not None and rollout.version != self.policy_version:
            del self._received[worker.index]
            worker.dropped += 1
        return worker.index not in self._received

    def rollouts(self) -> Iterator[WorkerRollout]:
        """Yields rollouts forever, each of one worker, in the order in which they are done.

        From each worker, ``in_flight`` rollouts are requested ahead, with the newest weights at
        that time, and another one as soon as one is taken. So no worker waits for another, and a
        slow loop slows them down instead of filling the object store. If one update follows each
        rollout, and workers are equally fast, a rollout is made with weights that are at most
        ``num_workers * in_flight`` versions old. If several rollouts are done, that of the worker
        with the fewest rollouts comes first; none is dropped.

        The arrays are in the object store: they are read-only, not copied, and their memory is
        freed when the rollout and its arrays have no reference left.

        Rollouts in flight stay in flight when the loop ends, by Ctrl-C, too: the next loop yields
        them.

        Raises:
            gymnasium.error.ClosedEnvironmentError: The workers are closed.
            ray.exceptions.RayActorError: A worker died several times in a row.
            Exception: The policy or the environments of a worker raised it.
        """
        self._check_open()
        return self._endless()

    def _endless(self) -> Iterator[WorkerRollout]:
        while True:
            self._check_open()
            self._ask_ahead()
            if not self._received:
                self._receive(self._await(self._workers))
                self._ask_ahead()  # the worker continues while the loop uses the rollout
            index = next(iter(self._received), None)
            if index is not None:
                rollout = self._received[index]
                # No call comes before the end of `yield`, so no Ctrl-C, which would lose it.
                del self._received[index]
                yield rollout

    def _ask_ahead(self) -> None:
        for worker in self._workers:
            while worker.starting is None and len(worker.calls) < self.in_flight:
                worker.ask(self.policy_version, self._weights)

    def stats(self) -> WorkerStats:
        """Returns the counts of all workers, as of their last rollouts."""
        workers = self._workers

        def counts(name: str) -> Any:
            return np.array([getattr(worker, name) for worker in workers], np.int64)

        return WorkerStats(
            elapsed=time.monotonic() - self._began,
            waited=self._waited,
            policy_version=self.policy_version,
            rollouts=counts("rollouts"),
            steps=counts("steps"),
            bytes=counts("nbytes"),
            in_flight=np.array([len(worker.calls) for worker in workers], np.int64),
            staleness=counts("staleness"),
            dropped=counts("dropped"),
            restarts=counts("restarts"),
            pids=tuple(worker.description.pid for worker in workers),
            nodes=tuple(worker.description.node for worker in workers),
            envs=tuple(worker.envs for worker in workers),
        )

    def close(self, grace: float | None = 5.0) -> None:
        """Ends the actors; does nothing if they are closed.

        Args:
            grace: Seconds in which workers may complete a rollout in flight and close their
                environments before they are killed. ``None``: no limit.

        Raises:
            TypeError: ``grace`` is not a number; nothing was closed.
            ValueError: ``grace`` is negative or NaN; nothing was closed.
        """
        seconds = as_timeout(grace, "grace")
        if not self._open:
            return
        self._open = False
        if _session() != self._session:
            return  # Ray was shut down, and ended them
        try:
            if seconds != 0:
                closing = [worker.close() for worker in self._workers]
                ray.wait(closing, num_returns=len(closing), timeout=seconds)
        finally:
            for worker in self._workers:
                worker.kill()

    def _wait_for_start(self, timeout: float | None) -> None:
        """Waits until all workers have started, or raises the first exception of a worker."""
        waiting = {worker.starting: worker for worker in self._workers}
        deadline = None if timeout is None else time.monotonic() + timeout
        while waiting:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=left)
            if not ready:
                raise TimeoutError(self._too_slow(timeout, list(waiting.values())))
            waiting.pop(ready[0]).finish_start()

    def _take_errors(self) -> None:
        """Takes the exceptions of workers that were killed while they started.

        Ray prints errors that are not taken, which would hide the one that is raised.
        """
        starting = [worker.starting for worker in self._workers if worker.starting is not None]
        ended, _ = ray.wait(starting, num_returns=len(starting), timeout=1) if starting else ([], 0)
        for reference in ended:
            with contextlib.suppress(Exception):
                ray.get(reference)

    def _too_slow(self, timeout: Any, waiting: Sequence[RemoteWorker]) -> str:
        names = ("num_cpus", "num_gpus", "resources")
        needed = {name: self._options[name] for name in names if name in self._options}
        total, free = ray.cluster_resources(), ray.available_resources()
        return (
            f"workers {[worker.index for worker in waiting]} of {self.num_workers} have not "
            f"started in {timeout:g} s. Each needs {needed}, and the cluster has "
            f"{total.get('CPU', 0):g} CPU, of which {free.get('CPU', 0):g} are free. Ask for fewer "
            "workers, for a smaller num_cpus, or for more time by start_timeout."
        )

    def _check_alike(self) -> None:
        first = self._workers[0].description
        for worker in self._workers:
            if worker.description.envs != first.envs:
                raise ValueError(
                    f"all workers must have the same environments: `make_env` made [{first.envs}] "
                    f"in worker 0 and [{worker.description.envs}] in worker {worker.index}."
                )
        if self._new_weights is not None:
            self._check_takes_weights()

    def _check_takes_weights(self) -> None:
        first = self._workers[0].description
        if not first.takes_weights:
            raise TypeError(
                "to publish weights, `policy` must make an object with a method "
                f"`set_weights(weights)`; it made {first.policy!r}, which has none."
            )

    def _check_open(self) -> None:
        if not self._open:
            raise ClosedEnvironmentError("the workers are closed.")
        if _session() != self._session:
            raise ClosedEnvironmentError("the workers ended when Ray was shut down.")

    def _await(self, workers: list[RemoteWorker]) -> RemoteWorker:
        """Waits for the next answer of some workers; returns the worker."""
        fewest_first = sorted(workers, key=lambda worker: worker.rollouts)
        awaited = {worker.awaited: worker for worker in fewest_first}
        began, reminder = time.monotonic(), reminder_s()
        try:
            while not (ready := ray.wait(list(awaited), num_returns=1, timeout=reminder)[0]):
                LOGGER.warning(
                    "rollouts: still waiting for workers %s after %.1f s",
                    [worker.index for worker in workers],
                    time.monotonic() - began,
                )
        finally:
            self._waited += time.monotonic() - began
        return awaited[ready[0]]

    @uninterrupted()
    def _receive(self, worker: RemoteWorker) -> None:
        """Takes the answer of a worker, which has arrived; keeps a rollout until it is returned."""
        rollout = worker.receive()
        if rollout is not None:
            worker.staleness = self.policy_version - rollout.version
            self._received[worker.index] = rollout


def _session() -> str | None:
    """Returns the id of this program in Ray's cluster, which changes with each ``ray.init``."""
    return ray.get_runtime_context().get_worker_id() if ray.is_initialized() else None


def _check_function(name: str, function: Any, purpose: str) -> None:
    """Raises ``TypeError`` unless ``function`` can be called without arguments."""
    wanted = f"`{name}` must be a function without arguments that {purpose}"
    if not callable(function):
        raise TypeError(f"{wanted}, got {type(function)}.")
    signature = mismatched_signature(function)
    if signature is not None:
        raise TypeError(f"{wanted}, but {shown(function)} takes {signature}.")


def _as_options(num_cpus: Any, options: dict[str, Any]) -> dict[str, Any]:
    is_number = isinstance(num_cpus, int | float) and not isinstance(num_cpus, bool)
    if not is_number or not 0 <= num_cpus < float("inf"):
        raise ValueError(f"`num_cpus` must be a number of processors from 0 on, got {num_cpus!r}.")
    for name in options:
        if name in _FIXED_OPTIONS:
            raise ValueError(f"`{name}` cannot be in `actor_options`: {_FIXED_OPTIONS[name]}.")
    return {
        "scheduling_strategy": "SPREAD",
        **options,
        "num_cpus": num_cpus,
        "max_restarts": -1,
        "max_task_retries": -1,  # so that calls wait while Ray restarts an actor
    }
