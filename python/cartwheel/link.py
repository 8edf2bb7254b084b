"""The caller's side of the channels, as the native pool uses it."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import TYPE_CHECKING, Any

from cartwheel.errors import WorkerDiedError
from cartwheel.faults import Fault, add_note, raise_first
from cartwheel.infos import add_info
from cartwheel.log import LOGGER, log_waiting
from cartwheel.spaces import batch_opaque, rows_of

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel import _cartwheel
    from cartwheel.crew import Crew

#: Processes that may die in a row while they make the environments of one worker anew.
_ATTEMPTS = 3


class Link:
    """Sends messages to workers and receives what they announce.

    Attributes:
        timeout: Seconds that a synchronous call may take, or ``None``.
    """

    def __init__(
        self,
        owner: VectorEnv[Any, Any, Any],
        crew: Crew,
        action_space: Space[Any],
        timeout: float | None,
    ) -> None:
        """Links ``owner``, which is not kept alive by it, to its workers."""
        self._owner = weakref.ref(owner)
        self._num_envs = owner.num_envs
        self._crew = crew
        self._action_space = action_space
        self._faults: list[Fault] = []
        #: What was posted for the pending call, one message a worker.
        self._posted: list[Any] = []
        #: Keywords of the resets of rows that were sent last.
        self._row_resets: dict[int, dict[str, Any]] = {}
        #: Answers to the pending control call, by worker.
        self._answers: dict[int, list[Any]] = {}
        #: The descriptor that follows what was posted, while a rollout is attached.
        self._attaching: int | None = None
        self.timeout = timeout

    def split(self, parts: list[Any]) -> list[list[Any]]:
        """Splits a list with one entry a row by worker."""
        return [parts[first:last] for first, last in self._crew.shards]

    def pack(self, contents: list[Any]) -> list[Any]:
        """Makes one message a worker, or raises because one cannot travel."""
        pairs = zip(self._crew.channels, contents, strict=True)
        return [channel.pack(content) for channel, content in pairs]

    def pack_reset(
        self,
        seeds: list[int | None],
        mask: NDArray[np.bool_] | None,
        options: dict[str, Any] | None,
    ) -> list[Any]:
        """Makes the messages for a reset: the keywords of every row that is reset."""
        resets = [
            {"seed": seed, "options": dict(options) if isinstance(options, dict) else options}
            if mask is None or mask[row]
            else None
            for row, seed in enumerate(seeds)
        ]
        return self.pack(self.split(resets))

    def pack_actions(self, actions: Any) -> list[Any]:
        """Makes the messages for a step whose action space has no fixed shape."""
        return self.pack(self.split(rows_of(self._action_space, actions, self._num_envs)))

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> list[tuple[int, Any]]:
        """Makes the messages for resets of rows that are sent: workers and their rows' keywords."""
        resets = [
            {"seed": seed, "options": None if options is None else dict(options)} for seed in seeds
        ]
        self._row_resets.update(zip(rows, resets, strict=True))
        return self._pack_rows("resets", rows, resets)

    def pack_sent_actions(self, actions: Any, rows: list[int]) -> list[tuple[int, Any]]:
        """Makes the messages for steps of rows that are sent, in a space without a fixed shape."""
        return self._pack_rows("actions", rows, rows_of(self._action_space, actions, len(rows)))

    def _pack_rows(self, kind: str, rows: list[int], parts: list[Any]) -> list[tuple[int, Any]]:
        messages = []
        for worker, (first, last) in enumerate(self._crew.shards):
            own = {
                row - first: part
                for row, part in zip(rows, parts, strict=True)
                if first <= row < last
            }
            if own:
                messages.append((worker, self._crew.channels[worker].pack((kind, own))))
        return messages

    def post(self, messages: list[Any]) -> None:
        """Sends one message a worker. One that is gone is found when the call is waited for."""
        self._posted = messages
        for channel, message in zip(self._crew.channels, messages, strict=True):
            with contextlib.suppress(ConnectionError):
                channel.post(message)

    def post_again(self, worker: int) -> None:
        """Sends what was posted for the pending call to a worker that was started anew."""
        channel = self._crew.channels[worker]
        with contextlib.suppress(ConnectionError):
            channel.post(self._posted[worker])
            if self._attaching is not None:
                channel.send_descriptor(self._attaching, self._crew.processes[worker].pid)

    def post_some(self, messages: list[tuple[int, Any]]) -> None:
        """Sends messages to some workers. One that is gone is found when rows are received."""
        for worker, message in messages:
            with contextlib.suppress(ConnectionError):
                self._crew.channels[worker].post(message)

    def attach_rollout(self, pool: _cartwheel.Pool, slab: _cartwheel.RolloutSlab) -> None:
        """Makes a rollout known to worker processes that have not used it before."""
        descriptor = slab.take_descriptor()
        if descriptor is None:
            return
        self._attaching = descriptor
        try:
            request = ("attach_rollout", slab.index, slab.steps)
            pool.call_async(self.pack([request] * len(self._crew.shards)), "rollout")
            for channel, process in zip(self._crew.channels, self._crew.processes, strict=True):
                with contextlib.suppress(ConnectionError):
                    channel.send_descriptor(descriptor, process.pid)
            pool.call_wait(self.timeout)
        finally:
            self._attaching = None
            os.close(descriptor)

    def receive(self, worker: int) -> Any:
        """Receives what worker ``worker`` announced.

        Raises:
            WorkerDiedError: It ended before it could send that.
        """
        return self._crew.receive(worker, "send")

    def _receive_unless_dead(self, worker: int) -> Any:
        """Receives what a worker announced, or ``None`` when it died first and may be started anew.

        Raises:
            WorkerDiedError: It died, and that is to be raised.
        """
        try:
            return self.receive(worker)
        except WorkerDiedError:
            if self._crew.recovery.on_worker_death == "raise":
                raise
            return None

    def receive_faults(self, worker: int) -> None:
        """Receives the faults of one worker and keeps them for :meth:`raise_faults`."""
        faults = self._receive_unless_dead(worker)
        if faults is None:  # its rows must be reset, as announced, but nobody knows why
            died = self._crew.died(worker, "send")
            faults = [Fault.of(self._crew.shards[worker][0], died, travels=False)]
        self._faults.extend(faults)

    def raise_faults(self, received: list[int] | None = None) -> None:
        """Raises the fault of the lowest row, which came with the rows ``received``, if any."""
        faults, self._faults = self._faults, []
        raise_first(faults, received)

    def receive_fault(self, worker: int, row: int) -> None:  # noqa: ARG002 - they come in order
        """Receives the fault of one row that was sent and keeps it for :meth:`raise_faults`."""
        self.receive_faults(worker)

    def receive_rest(self, worker: int, row: int) -> bytes:  # noqa: ARG002 - they come in order
        """Receives infos that did not fit into shared memory and begin with row ``row``.

        They are lost when a worker that may be started anew died before it had sent them.
        """
        rest: bytes | None = self._receive_unless_dead(worker)
        return rest or b""

    def receive_answers(self) -> tuple[Any, ...] | None:
        """Receives the answers to a control call, one a row, or raises the lowest row's fault.

        Returns:
            The answers; ``None`` when some workers died first and must be :meth:`asked_again`.
        """
        workers = range(len(self._crew.shards))
        received = {worker: self._receive_unless_dead(worker) for worker in workers}
        # A worker that was not asked again answers nothing.
        self._answers.update({worker: answer for worker, answer in received.items() if answer})
        if len(self._answers) < len(workers):
            return None
        answers = [answer for worker in workers for answer in self._answers[worker]]
        self._answers = {}
        faults = [answer for answer in answers if isinstance(answer, Fault)]
        if faults:
            raise_first(faults)
        return tuple(answers)

    def asked_again(self) -> list[Any]:
        """The messages that ask those who died before they answered, one a worker."""
        return [
            channel.pack(("skip", "", [])) if worker in self._answers else self._posted[worker]
            for worker, channel in enumerate(self._crew.channels)
        ]

    def discard(self, worker: int, failed: bool, spilled: bool, row: int) -> None:  # noqa: ARG002, FBT001
        """Receives and drops what a worker announced."""
        for _ in range(failed + spilled):
            self._receive_unless_dead(worker)

    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int
    ) -> dict[str, Any]:
        """Adds one info to a batch of ``rows`` by ``VectorEnv._add_info``, or a subclass's own."""
        return add_info(self._owner(), infos, info, place, rows)

    def batch_opaque(self, space: Space[Any], found: dict[int, Any], rows: int) -> Any:
        """Batches ``rows`` values of a space without a fixed shape."""
        return batch_opaque(space, found, rows)

    def still_waiting(self, call: str, seconds: float, owed: list[tuple[int, int]]) -> None:
        """Warns that ``call`` has waited for ``seconds``; ``owed`` are the rows it waits for."""
        log_waiting(call, seconds, owed, self._crew.shards, self._crew.processes)

    def worker_died(self, worker: int, pid: int, rows: list[int], phase: str) -> WorkerDiedError:  # noqa: ARG002
        """The exception for a worker that the native pool found dead."""
        return self._crew.logged(self._crew.died(worker, phase))

    def restart(self, worker: int, phase: str, over: list[bool], resetting: list[int]) -> int:
        """Starts a worker in the place of one that the native pool found dead.

        Args:
            worker: Its index.
            phase: What it was doing.
            over: Which of its rows were over.
            resetting: Those of its rows that were sent to be reset, counted from its first.

        Returns:
            The new process id.

        Raises:
            WorkerDiedError: It was started anew often enough, or dies while it makes environments.
            Exception: Its environments could not be made.
        """
        crew, first = self._crew, self._crew.shards[worker][0]
        resets = {row: self._row_resets.get(first + row, {}) for row in resetting}
        died = crew.died(worker, phase)
        for _ in range(_ATTEMPTS):
            if not crew.recovery.allows(crew.restarts[worker]):
                restarts = crew.restarts[worker]
                add_note(died, f"it was started anew {restarts} times before (max_restarts)")
                break
            LOGGER.warning("started anew: %s", died)
            try:
                return crew.restart(worker, over, resets)
            except WorkerDiedError as error:
                died = error
        raise died
