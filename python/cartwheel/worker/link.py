"""The caller's side of the channels, as the native pool uses it."""

from __future__ import annotations

import contextlib
import copy
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

from cartwheel.arguments import copied
from cartwheel.errors import WorkerDiedError, add_note
from cartwheel.log import LOGGER, log_waiting
from cartwheel.spaces.describe import batch_opaque, rows_of
from cartwheel.worker.channel import WithDescriptor
from cartwheel.worker.faults import Fault, raise_first
from cartwheel.worker.infos import add_info

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._cartwheel import Pool, RolloutSlab
    from cartwheel.worker.crew import Crew

#: A worker, a message for it, and the resets that it asks for: their rows and keywords.
RowMessage: TypeAlias = tuple[int, Any, dict[int, dict[str, Any]]]

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
        #: What was posted for the pending call: its number, and one message a worker.
        self._posted: tuple[int, list[Any]] = (0, [])
        #: What workers that died were asked, by worker and process id.
        self._phases: dict[tuple[int, int], str] = {}
        #: Keywords of the resets of rows that were sent last.
        self._row_resets: dict[int, dict[str, Any]] = {}
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
        own = self._copier(options)
        resets = [
            {"seed": seed, "options": own()} if mask is None or mask[row] else None
            for row, seed in enumerate(seeds)
        ]
        return self.pack(self.split(resets))

    def pack_actions(self, actions: Any) -> list[Any]:
        """Makes the messages for a step whose action space has no fixed shape."""
        return self.pack(self.split(self._rows_of(actions, self._num_envs)))

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> list[RowMessage]:
        """Makes the messages for resets of rows that are sent: each row's keywords."""
        own = self._copier(options)
        resets = [{"seed": seed, "options": own()} for seed in seeds]
        return self._pack_rows("resets", rows, resets)

    def pack_sent_actions(self, actions: Any, rows: list[int]) -> list[RowMessage]:
        """Makes the messages for steps of rows that are sent, whose actions memory cannot hold."""
        return self._pack_rows("actions", rows, self._rows_of(actions, len(rows)))

    def _rows_of(self, actions: Any, num_rows: int) -> list[Any]:
        """The actions one by one: no views of the caller's arrays, where nothing is pickled."""
        parts = rows_of(self._action_space, actions, num_rows)
        return parts if self._crew.processes else [copy.deepcopy(part) for part in parts]

    def _copier(self, options: Any) -> Callable[[], Any]:
        """What gives each row its own copy of the options of a reset, as they are now."""
        now = copied(dict(options) if isinstance(options, dict) else options)
        if self._crew.processes:  # pickling copies what is in the dictionary
            return lambda: dict(now) if isinstance(now, dict) else now
        return lambda: copied(now)

    def _pack_rows(self, kind: str, rows: list[int], parts: list[Any]) -> list[RowMessage]:
        messages: list[RowMessage] = []
        for worker, (first, last) in enumerate(self._crew.shards):
            own = {
                row - first: part
                for row, part in zip(rows, parts, strict=True)
                if first <= row < last
            }
            if own:
                channel = self._crew.channels[worker]
                packed = channel.pack((kind, list(own), channel.pack(own)))
                resets = {first + row: part for row, part in own.items() if kind == "resets"}
                messages.append((worker, packed, resets))
        return messages

    def post(self, number: int, messages: list[Any]) -> None:
        """Sends one message a worker. One that is gone is found when the call is waited for.

        If an exception such as Ctrl-C comes, the call is repeated: the number says that it is the
        same one, and what has been sent is not sent again.
        """
        self._posted = number, messages
        for channel, message in zip(self._crew.channels, messages, strict=True):
            channel.forget()
            with contextlib.suppress(ConnectionError):
                channel.post_once(number, message)

    def post_again(self, worker: int) -> None:
        """Sends what was posted for the pending call to a worker that was started anew."""
        number, messages = self._posted
        with contextlib.suppress(ConnectionError):
            self._crew.channels[worker].post_once(number, messages[worker])

    def post_some(self, number: int, messages: list[RowMessage]) -> None:
        """Sends messages to some workers, as :meth:`post` does to all, and keeps what they say."""
        for worker, message, resets in messages:
            self._row_resets.update(resets)
            with contextlib.suppress(ConnectionError):
                self._crew.channels[worker].post_once(number, message)

    def hang_up(self) -> None:
        """Ends every channel: workers that wait for a message raise, and can be closed."""
        for channel in self._crew.channels:
            channel.hang_up()

    def attach_rollout(self, pool: Pool, slab: RolloutSlab) -> None:
        """Makes a rollout known to worker processes that have not used it before."""
        descriptor = slab.take_descriptor()
        if descriptor is None:
            return
        request = ("attach_rollout", slab.index, slab.steps)
        messages = self.pack([request] * len(self._crew.shards))
        pool.call_async([WithDescriptor(message, descriptor) for message in messages], "rollout")
        pool.call_wait(self.timeout)

    def _receive_unless_dead(self, worker: int, number: int) -> Any:
        """Receives what a worker announced, or ``None`` when it died first and may be started anew.

        Raises:
            WorkerDiedError: It died, and that is to be raised.
        """
        try:
            return self._crew.receive_announced(worker, number)
        except WorkerDiedError:
            if self._crew.recovery.on_worker_death == "raise":
                raise
            return None

    def _receive_faults(self, worker: int, number: int) -> list[Fault]:
        """Receives the faults that a worker announced, or its death where that came first."""
        try:
            faults: list[Fault] = self._crew.receive_announced(worker, number)
        except WorkerDiedError as died:
            if self._crew.recovery.on_worker_death == "raise":
                raise
            # Its rows must be reset, as announced, but nobody knows why.
            return [Fault.of(self._crew.shards[worker][0], died, travels=False)]
        return faults

    def raise_faults(
        self, announced: list[tuple[int, int | None, int]], received: list[int] | None
    ) -> None:
        """Receives the faults that workers announced and raises that of the lowest row.

        Args:
            announced: Workers, the row that it is about (``None`` for those of a task), and the
                numbers of the messages.
            received: The rows of the batch, if they were sent.
        """
        faults: list[Fault] = []
        for worker, _, number in announced:
            faults.extend(self._receive_faults(worker, number))
        raise_first(faults, received)

    def receive_rest(self, announced: tuple[int, int, int]) -> bytes | None:
        """Receives infos that did not fit into shared memory.

        They are lost, and it is ``None``, when a worker that may be started anew died before it had
        sent them.

        Args:
            announced: The worker, the row that they begin with, and the number of the message.
        """
        worker, _, number = announced
        rest: bytes | None = self._receive_unless_dead(worker, number)
        return rest

    def receive_answers(
        self, answers: dict[int, list[Any]], announced: list[tuple[int, int, int]]
    ) -> tuple[Any, ...] | None:
        """Receives the answers to a control call, one a row, or raises the lowest row's fault.

        Args:
            answers: Of each worker that has answered; what is received is added.
            announced: As for :meth:`raise_faults`.

        Returns:
            The answers; ``None`` when some workers died first and must be :meth:`asked_again`.
        """
        for worker, _, number in announced:
            answer = self._receive_unless_dead(worker, number)
            if answer:  # a worker that was not asked again answers nothing
                answers[worker] = answer
        workers = range(len(self._crew.shards))
        if len(answers) < len(workers):
            return None
        by_row = [answer for worker in workers for answer in answers[worker]]
        faults = [answer for answer in by_row if isinstance(answer, Fault)]
        if faults:
            raise_first(faults)
        return tuple(by_row)

    def asked_again(self, answers: dict[int, list[Any]]) -> list[Any]:
        """The messages that ask those who died before they answered, one a worker."""
        return [
            channel.pack(("skip", "", [])) if worker in answers else self._posted[1][worker]
            for worker, channel in enumerate(self._crew.channels)
        ]

    def discard(
        self, faults: list[tuple[int, int | None, int]], rests: list[tuple[int, int, int]]
    ) -> None:
        """Receives and drops what workers announced."""
        last = {worker: number for worker, _, number in sorted([*faults, *rests], key=_number)}
        for worker, number in last.items():
            self._crew.left[worker].clear()
            self._receive_unless_dead(worker, number)

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
        """The exception for a worker that the native pool found dead; later ones tell the same."""
        phase = self._phases.setdefault((worker, pid), phase)
        return self._crew.logged(self._crew.died(worker, phase))

    def bury(self, worker: int) -> None:
        """Waits until nobody is left who serves a worker that the native pool found dead."""
        self._crew.bury(worker)

    def restart(
        self, worker: int, phase: str, over: list[bool], resetting: list[int], announced: int
    ) -> int:
        """Starts a worker in the place of one that the native pool found dead.

        Args:
            worker: Its index.
            phase: What it was doing.
            over: Which of its rows were over.
            resetting: Those of its rows that were sent to be reset, counted from its first.
            announced: The number after which the new one counts what it announces.

        Returns:
            The new process id.

        Raises:
            WorkerDiedError: It was started anew often enough, or dies while it makes environments.
            multiprocessing.TimeoutError: It takes longer to make environments than a call may.
            Exception: Its environments could not be made.
        """
        crew, first = self._crew, self._crew.shards[worker][0]
        resets = {row: self._row_resets.get(first + row, {}) for row in resetting}
        died = crew.deaths[worker] = crew.died(worker, phase)
        for _ in range(_ATTEMPTS):
            if not crew.recovery.allows(crew.restarts[worker]):
                restarts = crew.restarts[worker]
                add_note(died, f"it was started anew {restarts} times before (max_restarts)")
                break
            LOGGER.warning("started anew: %s", died)
            try:
                return crew.restart(worker, over, resets, announced, self.timeout)
            except WorkerDiedError as error:
                died = error
        raise died


def _number(message: tuple[int, int | None, int]) -> int:
    """The number of a message that was announced."""
    return message[2]
