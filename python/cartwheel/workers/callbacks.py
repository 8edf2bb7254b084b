"""The methods that the native pool calls to communicate with workers."""

from __future__ import annotations

import copy
import logging
import operator
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

from cartwheel._internal.logging import log_event, log_waiting
from cartwheel._internal.reset_arguments import by_row, copied
from cartwheel._internal.spaces import batch_opaque, rows_of
from cartwheel.errors import WorkerDiedError, WorkerTimeoutError, add_note, noted
from cartwheel.workers.faults import Fault, add_info, raise_first
from cartwheel.workers.replacement import restart
from cartwheel.workers.serving.row_state import ResetCache, check_state, first_unsaved

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._cartwheel import Pool, RolloutSlab
    from cartwheel._internal.literals import States
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.workers.channels import CallerEnd
    from cartwheel.workers.group import WorkerGroup

#: A worker, a message for it, and the keywords or states of the resets in the message, by row.
RowMessage: TypeAlias = tuple[int, Any, dict[int, Any]]

#: The note for options that cannot be pickled, or are too large.
_NOT_SENT = "`options` cannot be sent to the worker processes"
#: The maximum number of consecutive deaths during one restart of a worker.
_ATTEMPTS = 3


class WorkerCallbacks:
    """Sends messages to workers and receives the messages that they announce.

    Attributes:
        timeout: Seconds that a synchronous call may take; ``None`` for no limit.
        row_resets: The keywords of the last reset that was sent to each row, or its state. The
            native pool writes them.
    """

    def __init__(
        self,
        owner: VectorEnv[Any, Any, Any] | None,
        group: WorkerGroup,
        action_space: Space[Any],
        timeout: float | None,
        states: States,
    ) -> None:
        """Keeps a weak reference to ``owner``; rows without one have no batches of infos."""
        self._owner = None if owner is None else weakref.ref(owner)
        self._num_envs = group.shards[-1][1]
        self._group = group
        self._action_space = action_space
        self._states = states
        #: The phase in which each worker process died, by worker and process id.
        self._phases: dict[tuple[int, int], str] = {}
        self.row_resets: dict[int, Any] = {}
        self.timeout = timeout

    def split(self, parts: list[Any]) -> list[list[Any]]:
        """Splits a list of one entry for each row into one list for each worker."""
        return [parts[first:last] for first, last in self._group.shards]

    def pack(self, contents: list[Any]) -> list[Any]:
        """Makes one message for each worker; raises if one cannot be sent."""
        pairs = zip(self._group.channels, contents, strict=True)
        return [channel.pack(content) for channel, content in pairs]

    def pack_reset(
        self, seeds: list[int | None], mask: NDArray[np.bool_] | None, options: ResetOptions
    ) -> list[Any]:
        """Makes the messages for a reset, with the keywords of every row that is reset."""
        rows = [True] * len(seeds) if mask is None else mask.tolist()
        resets = [
            _keywords(seed, own) if is_reset else None
            for is_reset, seed, own in zip(rows, seeds, by_row(options, len(seeds)), strict=True)
        ]
        with noted(_NOT_SENT):
            return self.pack(self.split(resets))

    def pack_actions(self, actions: Any) -> list[Any]:
        """Makes the messages for a step whose action space has no fixed shape."""
        return self.pack(self.split(self._rows_of(actions, self._num_envs)))

    def pack_row_resets(
        self, rows: list[int], seeds: list[int | None], options: ResetOptions
    ) -> list[RowMessage]:
        """Makes the messages for resets that ``send`` starts, with the keywords of each row."""
        pairs = zip(seeds, by_row(options, len(rows)), strict=True)
        resets = [_keywords(seed, own) for seed, own in pairs]
        with noted(_NOT_SENT):
            return self._pack_rows("resets", rows, resets)

    def keep_next_resets(
        self, pool: Pool, rows: list[int], seeds: list[int | None], options: ResetOptions
    ) -> None:
        """Keeps seeds and options for the next automatic resets of rows."""
        with noted(_NOT_SENT):
            packed = [
                self._channel_of(row).pack(_keywords(seed, own))
                for row, seed, own in zip(rows, seeds, by_row(options, len(rows)), strict=True)
            ]
        pool.keep_next_resets(rows, packed, "next_reset")

    def next_reset_rows(self, pool: Pool, calling: str) -> list[int]:
        """Returns the rows whose next automatic reset has details that were not used yet."""
        asked = self.pack(
            [("has_next_reset", "", own) for own in self.split([()] * self._num_envs)]
        )
        held = pool.call(asked, None, calling, self.timeout)
        return sorted({*pool.next_reset_rows(), *(row for row, has in enumerate(held) if has)})

    def pack_next_resets(self, rows: list[int], packed: list[Any]) -> list[RowMessage]:
        """Makes the messages that go with a step of these rows; ``None`` where nothing was kept."""
        return self._pack_rows("next", rows, packed)

    @staticmethod
    def check_state(state: Any) -> None:
        """Raises unless this is the state of a row."""
        check_state(state)

    def pack_save(self, rows: list[int]) -> list[Any]:
        """Makes the messages that ask for the states of rows."""
        asked = set(rows)
        parts = self.split([row in asked for row in range(self._num_envs)])
        return self.pack([("save", self._states, part) for part in parts])

    def first_unsaved(self, states: list[bytes]) -> tuple[int, str] | None:
        """Returns the place of the first state that cannot be loaded, and why."""
        return first_unsaved(states)

    def pack_row_states(self, rows: list[int], states: list[bytes]) -> list[RowMessage]:
        """Makes the messages for rows that continue from states."""
        return self._pack_rows("resets", rows, states)

    def pack_sample(self, seeds: list[int | None]) -> list[Any]:
        """Makes the messages that reset rows for states to cache; ``None`` for other rows."""
        return self.pack([("sample", self._states, part) for part in self.split(seeds)])

    def sampled(self, answers: tuple[Any, ...]) -> list[bytes]:
        """Returns the states from the answers, in the order of the rows."""
        return [state for state in answers if state is not None]

    def pack_cache(self, states: list[bytes], key: int, draws: list[tuple[int, int]]) -> list[Any]:
        """Makes the messages after which every reset loads a state.

        Raises:
            ValueError: A state was cut or changed.
        """
        for state in states:
            check_state(state)
        self._group.cache = cache = ResetCache(states, key)
        parts = self.split([(cache, draw) for draw in draws])
        return self.pack([("cache", "", part) for part in parts])

    def pack_draws(self) -> list[Any]:
        """Makes the messages that ask for the draws of every row."""
        return self.pack([("draws", "", part) for part in self.split([()] * self._num_envs)])

    def _channel_of(self, row: int) -> CallerEnd:
        (worker,) = self._group.workers_of([row])
        return self._group.channels[worker]

    def pack_sent_actions(self, actions: Any, rows: list[int]) -> list[RowMessage]:
        """Makes the messages for steps that ``send`` starts, if memory cannot hold the actions."""
        return self._pack_rows("actions", rows, self._rows_of(actions, len(rows)))

    def _rows_of(self, actions: Any, num_rows: int) -> list[Any]:
        """Returns the action of each row; a copy, unless pickling copies it anyway."""
        parts = rows_of(self._action_space, actions, num_rows)
        return parts if self._group.processes else [copy.deepcopy(part) for part in parts]

    def _pack_rows(self, kind: str, rows: list[int], parts: list[Any]) -> list[RowMessage]:
        messages: list[RowMessage] = []
        for worker, (first, last) in enumerate(self._group.shards):
            own = {
                row - first: part
                for row, part in zip(rows, parts, strict=True)
                if first <= row < last
            }
            if own:
                channel = self._group.channels[worker]
                packed = channel.pack((kind, list(own), channel.pack(own)))
                resets = {first + row: part for row, part in own.items() if kind == "resets"}
                messages.append((worker, packed, resets))
        return messages

    def attach_rollout(self, pool: Pool, slab: RolloutSlab) -> None:
        """Announces a rollout to the worker processes, unless they know it already."""
        descriptor = slab.take_descriptor()
        if descriptor is None:
            return
        request = ("attach_rollout", slab.index, slab.steps)
        messages = self.pack([request] * len(self._group.shards))
        sent = [(message, [descriptor]) for message in messages]
        pool.call(sent, None, "rollout", self.timeout)

    def _receive_unless_dead(self, worker: int, number: int, seconds: float | None) -> Any:
        """Receives an announced message; ``None`` if its worker died first and may be restarted."""
        try:
            return self._group.receive_announced(worker, number, seconds)
        except WorkerDiedError:
            if not self._is_replaced(worker, number):
                raise
            return None

    def _is_replaced(self, worker: int, number: int) -> bool:
        """Whether the process that announced this message was replaced, or will be."""
        restarts = self._group.restart_policy.on_worker_death == "restart"
        return restarts or self._group.is_from_replaced(worker, number)

    def _receive_faults(self, worker: int, number: int, seconds: float | None) -> list[Fault]:
        """Receives the faults that a worker announced; if it died first, its death as a fault."""
        try:
            faults: list[Fault] = self._group.receive_announced(worker, number, seconds)
        except WorkerDiedError as died:
            if not self._is_replaced(worker, number):
                raise
            # The announced faults still require a reset of the rows, but their exceptions are lost.
            return [Fault.from_exception(self._group.shards[worker][0], died, is_remote=False)]
        return faults

    def raise_faults(
        self,
        announced: list[tuple[int, int | None, int]],
        received: list[int] | None,
        seconds: float | None,
    ) -> None:
        """Receives the faults that workers announced and raises the fault of the lowest row.

        Args:
            announced: For each message its worker, its row (``None`` if it is about a task of the
                whole worker) and its number.
            received: The rows of the batch, if the rows were sent by ``send``.
            seconds: The time limit of the call.
        """
        faults: list[Fault] = []
        for worker, _, number in announced:
            faults.extend(self._receive_faults(worker, number, seconds))
        raise_first(faults, received)

    def exceptions_by_row(
        self, announced: list[tuple[int, int | None, int]]
    ) -> dict[int, BaseException]:
        """Receives the faults of rows that are the only ones of their workers.

        Args:
            announced: As for :meth:`raise_faults`.

        Returns:
            The exception of each of these rows; of one whose process died first, its death.
        """
        exceptions: dict[int, BaseException] = {}
        for worker, _, number in announced:
            row, _ = self._group.shards[worker]
            try:
                for fault in self._group.receive_announced(worker, number):
                    exceptions[row] = fault.take_exception()
            except WorkerDiedError as died:
                exceptions[row] = copy.copy(died)  # without this frame, which has the dictionary
        return exceptions

    def receive_rest(self, announced: tuple[int, int, int], seconds: float | None) -> bytes | None:
        """Receives infos that did not fit into shared memory.

        Args:
            announced: The worker, the first row of these infos, and the number of the message.
            seconds: The time limit of the call.

        Returns:
            The infos; ``None`` when a worker that may be restarted died before it sent them.
        """
        worker, _, number = announced
        rest: bytes | None = self._receive_unless_dead(worker, number, seconds)
        return rest

    def receive_answers(
        self,
        answers: dict[int, list[Any]],
        announced: list[tuple[int, int, int]],
        rows: list[int] | None,
        seconds: float | None,
    ) -> tuple[Any, ...] | None:
        """Receives the answers of rows to a control call, or raises the lowest row's fault.

        Args:
            answers: The answers of each worker that has answered; new answers are added.
            announced: As for :meth:`raise_faults`.
            rows: The rows, in the order of the result; ``None`` for all rows.
            seconds: The time limit of the call.

        Returns:
            The answers; ``None`` when workers died first and must be asked again, with the messages
            of :meth:`asked_again`.
        """
        for worker, _, number in announced:
            answer = self._receive_unless_dead(worker, number, seconds)
            if answer:  # a worker that was not asked again answers with an empty list
                answers[worker] = answer
        workers = range(len(self._group.shards))
        if len(answers) < len(workers):
            return None
        by_row = [answer for worker in workers for answer in answers[worker]]
        faults = [answer for answer in by_row if isinstance(answer, Fault)]
        if faults:
            raise_first(faults)
        return tuple(by_row if rows is None else (by_row[row] for row in rows))

    def asked_again(self, answers: dict[int, list[Any]], messages: list[Any]) -> list[Any]:
        """Returns a message for each worker: the call again, if it died before it answered."""
        return [
            channel.pack(("skip", "", [])) if worker in answers else messages[worker]
            for worker, channel in enumerate(self._group.channels)
        ]

    def discard(
        self,
        faults: list[tuple[int, int | None, int]],
        rests: list[tuple[int, int, int]],
        seconds: float | None,
    ) -> None:
        """Receives and drops the messages that workers announced, in the time of the call."""
        for worker, _, number in sorted([*faults, *rests], key=operator.itemgetter(2)):  # by number
            self._receive_unless_dead(worker, number, seconds)

    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int
    ) -> dict[str, Any]:
        """Adds one info to a batch of ``rows`` by the owner's ``_add_info``."""
        owner = None if self._owner is None else self._owner()
        return add_info(owner, infos, info, place, rows)

    def batch_opaque(self, space: Space[Any], found: dict[int, Any], rows: int) -> Any:
        """Batches ``rows`` values of a space without a fixed shape."""
        return batch_opaque(space, found, rows)

    def still_waiting(self, call: str, seconds: float, outstanding: list[tuple[int, int]]) -> None:
        """Warns that ``call`` has waited for ``seconds``; ``outstanding`` are ranges of rows."""
        log_waiting(call, seconds, outstanding, self._group.shards, self._group.processes)

    def timed_out(self, call: str, seconds: float, rows: list[int]) -> WorkerTimeoutError:
        """Returns the exception for rows that have not answered in time."""
        return WorkerTimeoutError.from_call(call, seconds, rows, self._group.workers_of(rows))

    def worker_died(self, worker: int, pid: int, phase: str) -> WorkerDiedError:
        """Returns the exception for a dead worker; later ones name the same phase."""
        phase = self._phases.setdefault((worker, pid), phase)
        return self._group.logged(self._group.died(worker, phase))

    def reap(self, worker: int) -> None:
        """Kills the process of a worker that the native pool found dead, and waits for its end."""
        self._group.reap(worker)

    def restart(
        self,
        worker: int,
        pid: int,
        phase: str,
        hung: bool,  # noqa: FBT001 - called by position, by the native pool
        over: list[bool],
        resetting: list[int],
        announced: int,
        attempt: int,
    ) -> int | None:
        """Restarts a worker that the native pool found dead, because it failed or retired.

        Args:
            worker: The index of the worker.
            pid: The process that died. If another one was started since, Ctrl-C ended an earlier
                restart, or the other one died in this restart.
            phase: The phase in which it died.
            hung: Whether the native pool killed it, because it made no progress.
            over: For each of its rows, whether the episode was over.
            resetting: Its rows whose reset was sent, counted from its first row.
            announced: The new process numbers its announced messages after this number.
            attempt: The number of new processes that have died already.

        Returns:
            The process id of the new process. ``None`` if it died too: native code clears its
            traces and calls again.

        Raises:
            WorkerDiedError: The limit ``max_restarts`` is reached, the policy is to raise, or new
                processes died as well.
            WorkerTimeoutError: The limit is reached and the worker hung, or the construction took
                longer than a call may.
            Exception: The environments could not be made.
        """
        group, first = self._group, self._group.shards[worker][0]
        policy = group.restart_policy
        resets = {row: self.row_resets.get(first + row, {}) for row in resetting}
        phase = "construct" if attempt else phase
        is_first = group.processes[worker].pid == pid
        if is_first:
            group.deaths[worker] = group.died(worker, phase)
        if attempt or (is_first and not group.has_retired(worker)):
            self._check_restart(worker, phase, hung=hung and not attempt)
        began = time.monotonic()
        try:
            new_pid = restart(group, worker, over, resets, announced, policy.timeout)
        except WorkerDiedError:
            if attempt + 1 < _ATTEMPTS and policy.on_worker_death == "restart":
                return None
            raise
        log_event(
            logging.INFO,
            f"worker {worker} serves again as process {new_pid}",
            event="restart",
            worker=worker,
            env_index=list(range(*group.shards[worker])),
            pid=new_pid,
            seconds=time.monotonic() - began,
        )
        return new_pid

    def _check_restart(self, worker: int, phase: str, *, hung: bool) -> None:
        """Logs and counts a failure of a worker that is restarted.

        Raises:
            WorkerDiedError: It must not be restarted.
            WorkerTimeoutError: It hung, and must not be restarted once more.
        """
        group = self._group
        if not hung and group.restart_policy.on_worker_death != "restart":
            raise self.worker_died(worker, group.processes[worker].pid, phase)
        ended = group.hung if hung else group.died
        if not group.restart_policy.allows(group.restarts[worker]):
            restarts = group.restarts[worker]
            raise add_note(
                ended(worker, phase), f"it was restarted {restarts} times before (max_restarts)"
            )
        log_event(
            logging.WARNING,
            f"restarting: {ended(worker, phase)}",
            event="hang" if hung else "death",
            worker=worker,
            env_index=list(range(*group.shards[worker])),
            pid=group.processes[worker].pid,
            phase=phase,
        )
        group.restarts[worker] += 1


def _keywords(seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the keywords of one row's ``reset``, with a copy of its present options."""
    own = options if options is None or isinstance(options, dict) else dict(options)
    return {"seed": seed, "options": copied(own)}
