"""The workers of one vector environment, as the caller sees them."""

from __future__ import annotations

import bisect
import contextlib
import copy
import dataclasses
import logging
import multiprocessing
import os
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any

from cartwheel._internal.logging import LOGGER, log_event
from cartwheel._internal.process import uninterrupted
from cartwheel._internal.weak_set import ConcurrentWeakSet
from cartwheel.errors import WorkerTimeoutError, add_note, named_rows
from cartwheel.workers import deaths
from cartwheel.workers.channels import Deadline, ProcessChannel
from cartwheel.workers.deaths import WorkerRows
from cartwheel.workers.exit_codes import KILLED_S, kill
from cartwheel.workers.inheritance import free_in_workers, starting
from cartwheel.workers.restart_policy import RestartPolicy

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from cartwheel._cartwheel import Descriptor, Memory
    from cartwheel.errors import WorkerDiedError
    from cartwheel.workers.channels import CallerEnd
    from cartwheel.workers.faults import Fault
    from cartwheel.workers.process import StartProcess
    from cartwheel.workers.serving.row_state import ResetCache
    from cartwheel.workers.serving.worker import Worker

#: Seconds for which a worker may keep the others waiting for messages to them.
_TURN_S = 0.05
#: The least seconds that a process has to send what it has announced, where a single call has a
#: time limit: the results of the call are lost afterwards, and only a process that was stopped, and
#: not a busy one, needs as long. It is the limit of awaited rows, which wait for each other there.
SENDING_S = 5.0
#: The end of the record of environments that close too slowly.
_MORE_TIME = ". Call `close(timeout=...)` with as many seconds as they need"


@dataclasses.dataclass
class WorkerGroup:
    """The workers of one vector environment, as the caller sees them.

    Attributes:
        shards: For each worker, its first row and the row after its last.
        channels: The caller's end of each worker's channel.
        processes: The processes of the ``process`` executor; ``None`` before one is started.
        threads: The threads of the ``thread`` executor.
        local: The caller's own worker, for the ``inline`` executor.
        objects: For each worker, one list for each row with the objects that its infos refer to;
            ``None`` for processes.
        descriptions: The descriptions of their environments that workers have sent so far.
        restart_policy: How failures of environments and workers are handled.
        reported: The workers whose death was logged.
        owner: The process that started the workers.
        start_process: Starts worker processes; ``None`` for other executors.
        setup: The memory, and the keywords of ``Memory`` and ``Shard`` for worker processes.
        restarts: For each worker, how often it was restarted after a failure.
        retired: For each worker that retired and was not replaced yet, what its process left.
        deaths: The last death of each worker that was restarted.
        cache: The states that resets load; ``None`` if environments reset themselves.
        drawn: The rows whose terminal states are drawn.
        may_fork: Whether an error may advise the start method ``fork``.
        hung_up: Whether the channels are closed, or about to be: a call that waits for a message is
            not told that its worker died.
        closing: The processes whose pipes are closed, or about to be: another file may have the
            number of a pipe by then.
    """

    shards: list[tuple[int, int]]
    channels: list[CallerEnd] = dataclasses.field(default_factory=list)
    processes: list[Any] = dataclasses.field(default_factory=list)
    threads: list[threading.Thread] = dataclasses.field(default_factory=list)
    local: Worker | None = None
    objects: list[list[list[Any]] | None] = dataclasses.field(default_factory=list)
    descriptions: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    restart_policy: RestartPolicy = dataclasses.field(default_factory=RestartPolicy)
    reported: set[int] = dataclasses.field(default_factory=set)
    owner: int = dataclasses.field(default_factory=os.getpid)
    start_process: StartProcess | None = None
    setup: tuple[Memory, dict[str, Any], dict[str, Any]] | None = None
    restarts: list[int] = dataclasses.field(default_factory=list)
    retired: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    deaths: dict[int, WorkerDiedError] = dataclasses.field(default_factory=dict)
    cache: ResetCache | None = None
    drawn: list[int] = dataclasses.field(default_factory=list)
    may_fork: bool = True
    hung_up: bool = False
    closing: set[int] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.restarts = [0] * len(self.shards)
        free_in_workers(self)

    def describe(self, deadline: Deadline) -> list[dict[str, Any]]:
        """Waits for every worker's description.

        Raises:
            WorkerDiedError: A worker ended before it sent its description.
            WorkerTimeoutError: The deadline has passed.
            Exception: An environment function raised it, or its worker could not be set up.
        """
        if self.local is None:
            self.descriptions = self._receive_all(deadline)
        elif "fault" in self.descriptions[0]:
            raise self.descriptions[0]["fault"].take_exception()
        return self.descriptions

    def wait_until_ready(self, deadline: Deadline) -> None:
        """Waits until every worker serves; raises the same exceptions as :meth:`describe`."""
        if self.local is None:
            self._receive_all(deadline)

    def _receive_all(self, deadline: Deadline) -> list[dict[str, Any]]:
        """Receives one construction message from each worker; raises the lowest worker's fault."""
        messages: dict[int, dict[str, Any]] = {}
        late: list[int] = []
        # In turns: a worker that does not read, because it is not there yet or hangs, must not keep
        # the others from what they are sent.
        while deadline.left() != 0.0:
            sent = [channel.flush(_TURN_S) for channel in self.channels]
            if all(sent):
                break
        for worker in range(len(self.channels)):
            try:
                messages[worker] = self.receive(worker, "construct", deadline.left())
            except multiprocessing.TimeoutError:
                late += range(*self.shards[worker])
        for worker in [worker for worker in messages if "fault" in messages[worker]][1:]:
            del messages[worker]["fault"]  # the frames of an exception have this message
        for worker, message in messages.items():
            self.check(worker, message)
        if late:
            seconds = round(deadline.seconds or 0.0, 3)
            raise WorkerTimeoutError(
                f"the construction has timed out after {seconds:g} second(s): the workers of "
                f"{named_rows(late)} have not answered",
                env_index=late,
                workers=self.workers_of(late),
            )
        return list(messages.values())

    def check(self, worker: int, message: dict[str, Any]) -> None:
        """Raises the fault that a worker sent, if it sent one."""
        fault: Fault | None = message.get("fault")
        if fault is None:
            return
        if fault.row is not None:
            raise fault.take_exception()
        raise add_note(
            fault.take_exception(), f"raised by {self.named(worker)}, outside of its environments"
        )

    def named(self, worker: int) -> WorkerRows:
        """Returns a worker as messages name it."""
        return WorkerRows(worker, range(*self.shards[worker]))

    def receive(self, worker: int, phase: str, seconds: float | None = None) -> Any:
        """Waits for a message from worker ``worker``, which is in ``phase``.

        Raises:
            WorkerDiedError: The worker ended first.
            EOFError: The vector environment was closed meanwhile.
            multiprocessing.TimeoutError: No message came within ``seconds``.
        """
        deadline, channel = Deadline(seconds), self.channels[worker]
        try:
            channel.flush(deadline.left())  # the worker answers what it was sent
            packed = channel.receive(timeout=deadline.left())
        except EOFError:
            if self.hung_up:
                raise
            raise self.logged(self.died(worker, phase)) from None
        return self._unpacked(worker, packed)

    def _unpacked(self, worker: int, packed: Any) -> Any:
        """Unpacks what a worker sent; the classes of objects in it may raise anything."""
        try:
            return self.channels[worker].unpack(packed)
        except Exception as error:
            add_note(error, f"raised while a message of {self.named(worker)} was loaded")
            raise

    def receive_announced(self, worker: int, number: int, seconds: float | None = None) -> Any:
        """Waits for the message that worker ``worker`` announced under this number.

        A process that hangs sends it nevertheless. One that has not sent it in time was stopped: it
        is killed if it is replaced then.

        Args:
            worker: The index of the worker.
            number: The number of the message.
            seconds: The time limit of the call; ``None`` for that of the vector environment.

        Raises:
            WorkerDiedError: The process that announced the message died before it sent it.
            WorkerTimeoutError: The process was stopped. The next call finds that it hangs.
            EOFError: The vector environment was closed meanwhile.
        """
        channel, policy = self.channels[worker], self.restart_policy
        limit = self._sending_limit(seconds)
        try:
            try:
                packed = channel.receive(number, limit)
            except multiprocessing.TimeoutError:
                # A time-out of a single call always raises.
                if policy.on_worker_death != "restart" or limit != policy.timeout:
                    raise deaths.stopped(self.named(worker), limit or 0.0) from None
                self.reap(worker)
                packed = channel.receive(number)
        except EOFError:
            if self.hung_up:
                raise
            if self.is_from_replaced(worker, number):
                died = copy.copy(self.deaths[worker])  # the one that is kept must not get frames
                raise died from None
            raise self.logged(self.died(worker, "send")) from None
        return self._unpacked(worker, packed)

    def _sending_limit(self, seconds: float | None) -> float | None:
        """Returns how many seconds a worker has to send what it has announced.

        Args:
            seconds: The time limit of the call.
        """
        limit = self.restart_policy.timeout
        if not self.processes:
            return None
        if seconds is None:
            return limit
        seconds = max(seconds, SENDING_S)
        return seconds if limit is None else min(seconds, limit)

    def is_from_replaced(self, worker: int, number: int) -> bool:
        """Whether a process that was replaced announced this message."""
        channel = self.channels[worker]
        return isinstance(channel, ProcessChannel) and number <= channel.replaced

    def died(self, worker: int, phase: str) -> WorkerDiedError:
        """Returns the exception for a worker that ended before it answered."""
        who = self.named(worker)
        if self.start_process is None:
            return deaths.thread_died(who, phase)
        return deaths.process_died(
            who,
            self.processes[worker],
            phase,
            start=self.start_process,
            may_fork=self.may_fork,
            stderr=self._last_lines(worker),
        )

    def check_alive(self) -> None:
        """Raises the death of the first worker whose process has ended before it served."""
        for worker, process in enumerate(self.processes):
            if process._popen.has_ended():
                raise self.logged(self.died(worker, "construct"))

    def hung(self, worker: int, phase: str) -> WorkerTimeoutError:
        """Returns the exception for a worker process that was killed because it hung."""
        pid, seconds = self.processes[worker].pid, self.restart_policy.timeout
        return deaths.hung(self.named(worker), pid, phase, seconds)

    def workers_of(self, rows: list[int]) -> list[int]:
        """Returns the workers that have any of these rows."""
        starts = [first for first, _ in self.shards]
        return sorted({bisect.bisect_right(starts, row) - 1 for row in rows})

    def logged(self, died: WorkerDiedError) -> WorkerDiedError:
        """Logs a death once, and returns the exception."""
        if died.exitcode != deaths.NO_MAIN_GUARD and died.worker not in self.reported:
            self.reported.add(died.worker)
            log_event(  # with the text alone: a record that is kept must not keep the frames
                logging.WARNING,
                str(died),
                event="death",
                worker=died.worker,
                env_index=died.env_index,
                pid=died.pid,
                phase=died.phase,
                exitcode=died.exitcode,
            )
        return died

    def has_retired(self, worker: int) -> bool:
        """Whether the process of a dead worker ended by itself between two episodes.

        That also holds while its replacement has not served yet.
        """
        channel = self.channels[worker]
        if worker not in self.retired and isinstance(channel, ProcessChannel):
            left = None if channel.handoff is None else channel.handoff.read()
            if left is not None:
                self.retired[worker] = left
        return worker in self.retired

    def reap(self, worker: int) -> None:
        """Kills the process of a worker that is restarted or found dead, and waits for its end.

        The process may be alive if its start was interrupted after it had begun to serve. Two
        processes of one worker would write the same rows, so native code relies on its end.

        Raises:
            WorkerTimeoutError: It has not ended, although it was killed.
        """
        process = self.processes[worker]
        if process is not None and not kill(process, KILLED_S):
            raise deaths.not_ended(self.named(worker), process.pid, KILLED_S)

    def kill(self, worker: int) -> None:
        """Kills the process of a worker, without a wait for its end."""
        kill(self.processes[worker], 0.0)

    def start(self, worker: int, announced: int = 0) -> None:
        """Starts the process of a worker, in the place of one that has ended, if there was one.

        Args:
            worker: The index of the worker.
            announced: The number of the last message that the earlier process may have announced.

        Raises:
            WorkerDiedError: The fork server has ended, because it cannot import the main module.
            OSError: The system starts no more processes.
        """
        assert self.start_process is not None, "only processes are started here"
        with starting, uninterrupted():  # otherwise a started process could be lost
            try:
                process, channel = self.start_process(worker)
            except (EOFError, ConnectionError):
                if (ended := deaths.ended_server()) is None:
                    raise
                raise deaths.not_started(
                    self.named(worker),
                    *ended,
                    start=self.start_process,
                    may_fork=self.may_fork,
                ) from None
            (old, self.processes[worker]) = (self.processes[worker], process)
            (old_channel, self.channels[worker]) = (self.channels[worker], channel)
            if isinstance(old_channel, ProcessChannel):
                channel.follow(old_channel, announced)
            old_channel.close()
            if old is not None:
                with contextlib.suppress(ValueError):  # after Ctrl-C it may still count as running
                    old.close()
        if self.hung_up:  # meanwhile
            channel.hang_up()

    def hand_over(
        self,
        worker: int,
        over: list[bool] | None = None,
        resumed: dict[str, Any] | None = None,
        more: Sequence[Descriptor] = (),
    ) -> None:
        """Sends the memory to a worker process, which then begins to serve.

        Args:
            worker: The index of the worker.
            over: For each row of a restarted worker, whether its episode was over.
            resumed: The state of the dead process, for a restarted worker.
            more: Descriptors to send after those of the memory.
        """
        assert self.setup is not None, "there is memory to hand over"
        memory, plan, shard = self.setup
        if over is not None:
            shard = {**shard, "over": over}
        channel = self.channels[worker]
        message = channel.pack(({**plan, "worker": worker}, shard, resumed))
        channel.post((message, [*memory.descriptors(), *more]))

    def _last_lines(self, worker: int) -> str:
        channel = self.channels[worker]
        assert isinstance(channel, ProcessChannel), "only processes die"
        return channel.stderr.last_lines() if channel.stderr is not None else ""

    def hang_up(self) -> None:
        """Closes the channels to processes: calls that wait for a message raise ``EOFError``."""
        self.hung_up = True
        for channel in self.channels:
            if isinstance(channel, ProcessChannel):
                channel.hang_up()

    def abandon(self) -> None:
        """Frees what a forked worker inherited of this group."""
        self.setup = None
        for channel in self.channels:
            channel.close()
        for worker, process in enumerate(self.processes):
            if process is None or worker in self.closing:
                continue
            # A finalizer closes the pipes between the parent and the process only in the parent.
            # Where `multiprocessing` has no such finalizer, they stay open.
            popen = getattr(process, "_popen", None)
            for pipe in getattr(getattr(popen, "finalizer", None), "_args", None) or ():
                with contextlib.suppress(OSError):
                    os.close(pipe)

    def give_up(self) -> None:
        """Ends workers that were started but never served."""
        for channel in self.channels:
            channel.hang_up()
        if self.local is not None:
            self.local.close()
        self.join(grace=1.0)

    def log_late(self, late: list[int], grace: float, advice: str = _MORE_TIME) -> None:
        """Logs the workers that took too long to close their environments, and did nothing else."""
        for worker in late:
            what = "was killed" if self.processes else "continues until the program ends"
            LOGGER.warning(
                "%s %s: its environments had not closed after %.3g second(s), and what they write "
                "then may be missing%s",
                self.named(worker),
                what,
                grace,
                advice,
            )

    def join(self, *, grace: float) -> None:
        """Waits for the workers, and kills processes that still run after ``grace`` seconds.

        Ctrl-C may end it anywhere: another call does the rest.
        """
        deadline, end = Deadline(grace), Deadline(grace + KILLED_S)
        self.hung_up = True
        for worker, process in enumerate(self.processes):
            if process is None:  # never started
                continue
            if worker not in self.closing:
                process.join(deadline.left())
                if not kill(process, end.left()):
                    LOGGER.warning(
                        "%s", deaths.not_ended(self.named(worker), process.pid, KILLED_S)
                    )
                elif worker not in self.reported and process.exitcode not in deaths.EXPECTED_EXITS:
                    self.reported.add(worker)
                    how = deaths.described_exit(process.exitcode)
                    stderr = deaths.quoted(self._last_lines(worker))
                    LOGGER.warning("worker %d: when closed, %s%s", worker, how, stderr)
                self.closing.add(worker)
            with contextlib.suppress(ValueError):
                process.close()
        for thread in self.threads:
            thread.join(deadline.left())
            if thread.is_alive():
                await_at_exit(thread)
        # The list stays: another thread may still use it before it finds the pool closed.
        for channel in self.channels:
            channel.close()
        self.setup = None  # the memory keeps descriptors open
        if self.local is not None and self.local.is_half_closed:
            self.local.close()


#: Seconds that all threads together get to close their environments when the program ends. A thread
#: that takes longer never returns: native code lets it hang until the process is gone.
_GRACE = 1.0
_late: ConcurrentWeakSet[threading.Thread] = ConcurrentWeakSet()


def await_at_exit(thread: threading.Thread) -> None:
    """Waits for ``thread`` at the end of the program, if it still runs then."""
    _late.add(thread)


def _await_all() -> None:
    deadline = Deadline(_GRACE)
    for thread in _late:
        thread.join(deadline.left())


# The last of the finalizers with a priority: the others close vector environments.
Finalize(None, _await_all, exitpriority=0)
