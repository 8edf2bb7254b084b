"""The caller's side of one worker: its requests, and its restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from ray.exceptions import ActorDiedError, ObjectLostError, RayActorError, RayTaskError

from cartwheel._internal.logging import LOGGER
from cartwheel._internal.process import uninterrupted
from cartwheel.errors import add_note
from cartwheel.ray.rollout_actor import RolloutActor

if TYPE_CHECKING:
    from cartwheel.ray.rollout_actor import Description
    from cartwheel.ray.worker_rollout import WorkerRollout
    from cartwheel.vector.stats import Stats

#: The number of consecutive deaths without a rollout after which the next one is raised.
MAX_DEATHS = 3


class RemoteWorker:
    """One actor, which Ray restarts, and the references to its pending results.

    An actor answers in the order of the calls, so it is enough to wait for the first reference.

    Attributes:
        starting: While it starts and gets no requests: the reference to its description, or after
            a death, first to Ray's answer that a process exists again.
        calls: The requested rollouts: the version of each, by reference, in order.
        description: The description of its environments and policy; set when it has started.
        restarts: How often it was restarted.
        deaths: Consecutive deaths without a rollout.
        rollouts: Rollouts that arrived; ``steps`` and ``nbytes`` are their transitions and bytes.
        staleness: How many versions older than the newest the last rollout was.
        dropped: Rollouts of older versions that were dropped.
        envs: The stats of its environments after the last rollout, if they are cartwheel's.
    """

    def __init__(self, index: int, plan: Any, options: dict[str, Any]) -> None:
        self.index, self._plan, self._options = index, plan, options
        self.starting: Any = None
        self.calls: dict[Any, int] = {}
        self.restarts = self.deaths = 0
        self.rollouts = self.steps = self.nbytes = self.staleness = self.dropped = 0
        self.envs: Stats | None = None
        self.description: Description
        self._actor = self._make()
        self._start()

    def _make(self) -> Any:
        actor_class: Any = ray.remote(RolloutActor)
        return actor_class.options(**self._options).remote(self._plan, self.index)

    @property
    def awaited(self) -> Any:
        """The reference that is answered next; ``None`` if nothing was requested."""
        return self.starting or next(iter(self.calls), None)

    def finish_start(self) -> None:
        """Waits until the worker has started for the first time.

        Raises:
            RuntimeError: Its process ended.
            Exception: ``make_env`` or ``policy`` raised it.
        """
        try:
            self.description = ray.get(self.starting)
        except RayTaskError as error:
            raise self._original(error) from error
        except RayActorError as error:
            raise RuntimeError(
                f"the process of worker {self.index} ended while it made its environments and "
                f"policy: {error}"
            ) from error
        self.starting = None

    @uninterrupted()
    def ask(self, version: int, weights: tuple[Any, ...]) -> None:
        """Requests a rollout, unless the worker is starting."""
        if self.starting is None:
            self.calls[self._call("collect").remote(version, weights)] = version

    def receive(self) -> WorkerRollout | None:
        """Takes the answer to the first call, which has arrived; ``None`` if it is not a rollout.

        Raises:
            ray.exceptions.RayActorError: The worker has died too often without a rollout.
            Exception: The policy or the environments raised it.
        """
        reference = self.awaited
        try:
            answer = ray.get(reference)
        except RayTaskError as error:
            if self.starting is not None:
                self._start()  # again, by the next call
            self.calls.pop(reference, None)
            raise self._original(error) from error
        except (RayActorError, ObjectLostError) as error:
            self._restart(str(error), for_good=isinstance(error, ActorDiedError))
            if self.deaths > MAX_DEATHS:
                add_note(error, f"worker {self.index} died {self.deaths} times without a rollout")
                self.deaths = 0
                raise
            return None
        if answer is True:  # the process is back, without environments
            self._start()
            return None
        if self.starting is not None:
            self.starting, self.description = None, answer
            return None
        if answer is None:  # the process ended and was restarted in between
            self._restart("its process ended")
            return None
        del self.calls[reference]
        rollout: WorkerRollout
        rollout, self.envs = answer
        self.deaths = 0
        self.rollouts += 1
        self.steps += int(np.count_nonzero(rollout.valid))
        self.nbytes += rollout.nbytes
        return rollout

    def _restart(self, reason: str, *, for_good: bool = False) -> None:
        """Drops the requests of the worker, and starts it after its process ended."""
        self.calls.clear()
        self.restarts += 1
        self.deaths += 1
        if for_good:  # by `ray.kill`
            self._actor = self._make()
        # Ray repeats this call until a process exists, on another node if this one is gone.
        self.starting = self._actor.__ray_ready__.remote()
        LOGGER.warning("rollout worker %d died and is restarted: %s", self.index, reason)

    def _start(self) -> None:
        self.starting = self._call("start").remote(self.restarts)

    def _call(self, method: str) -> Any:
        """Returns a method of the actor whose calls fail when the process ends during them.

        Ray would repeat them unchanged, and forever.
        """
        return getattr(self._actor, method).options(max_task_retries=0)

    def close(self) -> Any:
        """Asks the worker to close its environments; returns a reference to wait for."""
        return self._call("close").remote()

    def kill(self) -> None:
        """Ends the process."""
        self.calls.clear()
        ray.kill(self._actor)

    def _original(self, error: RayTaskError) -> BaseException:
        """Returns the exception that the worker raised, with the worker in a note."""
        cause: BaseException = getattr(error, "cause", None) or error
        add_note(cause, f"raised in worker {self.index}")
        return cause
