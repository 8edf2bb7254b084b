"""The thread that sends requests to rows and receives their results.

Only this thread uses the pool. Other threads append to its inbox and wake it; it hands outcomes to
a callback. Processes are started by further threads, because that takes long.

A row is *up* while its process serves. A row whose process died is down, and its request has its
outcome at once; what the pool repeats in the next process is dropped.

This file is above 500 lines because it has all that this one thread does.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal.logging import LOGGER, log_event
from cartwheel._internal.process import name_this_thread
from cartwheel.awaitable.counts import Counts
from cartwheel.awaitable.opening import OpenPool, described_spaces
from cartwheel.awaitable.requests import Outcome, Request, ServedRow
from cartwheel.errors import WorkerDiedError, WorkerTimeoutError
from cartwheel.workers import launch, replacement
from cartwheel.workers.channels import Deadline
from cartwheel.workers.envs.observation_form import remade
from cartwheel.workers.faults import Fault
from cartwheel.workers.group import SENDING_S
from cartwheel.workers.restart_policy import RestartPolicy
from cartwheel.workers.serving.awaited_env import REPLY, Asked, Left

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel._cartwheel import Pool
    from cartwheel.awaitable.requests import Settings
    from cartwheel.workers.serving.awaited_env import Reply

#: Seconds that environments get to close, and that they get while rows are in flight.
_GRACE, _GRACE_IN_FLIGHT = 5.0, 1.0
#: Seconds that a process may take to start, before it makes an environment.
_START_S = 120.0


class Service:
    """Serves the requests to rows, in a thread of its own.

    Attributes:
        outcomes: Outcomes that were not taken yet, in order.
        closed: Set when the thread has ended and no process is left.
        failure: The exception that ended the thread, if one did.
        owner: The process of the thread.
    """

    def __init__(
        self, env_fns: list[bytes], settings: Settings, on_outcomes: Callable[[], None]
    ) -> None:
        """Prepares the processes; :meth:`start` begins.

        Args:
            env_fns: The pickled function of each row.
            settings: The settings.
            on_outcomes: Called by the thread when there are new outcomes.
        """
        self.outcomes: collections.deque[Outcome] = collections.deque()
        self.closed = threading.Event()
        self.failure: BaseException | None = None
        self.owner = os.getpid()
        self._env_fns = env_fns
        self._settings = settings
        self._on_outcomes = on_outcomes
        #: Whether a row that takes too long is killed.
        self._kills_hung = settings.policy.on_timeout == "restart"
        self._group = launch.prepare_processes(
            [b""] * len(env_fns),
            name=settings.name,
            context=settings.context,
            daemon=settings.daemon,
            restart_policy=RestartPolicy(
                on_worker_death="restart",
                max_restarts=None,
                timeout=SENDING_S,  # of a process that was stopped: no other row must wait for it
            ),
        )
        self._rows = [ServedRow() for _ in env_fns]
        self._counts = Counts(len(env_fns))
        #: From other threads: requests, and functions that the thread calls.
        self._inbox: collections.deque[Request | Callable[[], None]] = collections.deque()
        #: The request in flight of each row, unless it is late, in the order of their deadlines.
        self._timed: collections.OrderedDict[int, Request] = collections.OrderedDict()
        #: Steps whose actions go through shared memory, which are sent together.
        self._steps: list[Request] = []
        self._to_start: collections.deque[int] = collections.deque()
        self._starting = 0
        self._to_make: collections.deque[Request] = collections.deque()
        self._making = 0
        self._pool: Pool | None = None
        self._opened: OpenPool
        self._closing = False
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cartwheel-rows", daemon=True)

    # Methods for other threads

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def post(self, request: Request) -> None:
        """Leaves a request for the thread, which :meth:`wake` makes it read."""
        self._inbox.append(request)

    def restart(self, row: int) -> None:
        """Kills the process of a row; another one is started. The request of the row fails."""
        self._inbox.append(functools.partial(self._restart, row))
        group = self._group
        if self._pool is None and group.processes[row] is not None:
            # The thread waits for the environment of this process, which does not die by itself.
            group.reported.add(row)
            group.kill(row)

    def wake(self) -> None:
        """Makes the thread read its inbox."""
        self._arrived.set()
        pool = self._pool
        if pool is not None:
            pool.wake()

    def close(self) -> None:
        """Begins to close; :attr:`closed` is set in the end. Idempotent."""
        self._closing = True
        # The first process may be making an environment to describe, and one that was stopped may
        # have announced a message.
        self._group.hang_up()
        self.wake()

    def stats(self) -> dict[str, Any] | None:
        """Returns the counters; ``None`` before there is a pool."""
        return None if self._pool is None else self._counts.added_to(self._pool.stats())

    # The thread

    def _run(self) -> None:
        name_this_thread("cartwheel-rows")
        try:
            self._open()
            while not self._closing:
                self._serve()
        except BaseException as error:  # rows must not wait forever
            if not self._closing:
                LOGGER.exception("awaited rows cannot be served any more")
                self._fail_all(error)
        finally:
            self._shut_down()

    def _open(self) -> None:
        """Makes the memory for the given spaces, or for those of the first environment."""
        group, settings = self._group, self._settings
        spaces = settings.spaces
        describes = spaces is None and not settings.lazy
        if describes:
            spaces = described_spaces(group, self._env_fns[0], settings)
        self._opened = OpenPool.of_spaces(group, self._env_fns, settings, spaces)
        self._pool = pool = self._opened.pool
        if describes and spaces is not None:
            over, _, filled, announced = pool.lost(0)
            try:
                replacement.continue_with(group, 0, over, {}, announced, Deadline(_START_S))
            except Exception:
                if not self._closing:
                    group.reap(0)  # a request of the row starts another process
            else:
                self._rows[0].is_made = True
                self._up(0, group.processes[0].pid, filled)
        if not settings.lazy:
            for row in range(len(self._rows)):
                self._take(Request(row, Asked("make"), is_abandoned=True))

    def _serve(self) -> None:
        """Sends what is in the inbox, waits and passes outcomes on."""
        while self._inbox:
            self._read()
        if self._steps:
            steps, self._steps = self._steps, []
            self._send_steps(steps)
        if self.outcomes:
            self._on_outcomes()
        received = self._opened.pool.recv_rows(self._kill_late())
        if received is not None:
            self._receive(*received)
        for row in self._opened.pool.dead_workers():
            if self._rows[row].is_up:
                self._down(row)
        if self.outcomes:
            self._on_outcomes()

    # Sending

    def _read(self) -> None:
        """Does what is first in the inbox."""
        message = self._inbox.popleft()
        if isinstance(message, Request):
            self._take(message)
        else:
            message()

    def _take(self, request: Request) -> None:
        """Sends a request as soon as its row is up and idle."""
        row = self._rows[request.row]
        row.held = request
        self._advance(request.row)

    def _advance(self, index: int) -> None:
        """Sends the request that is held for a row, or starts its process, if that is possible."""
        row = self._rows[index]
        request = row.held
        if self._closing:
            return
        if not row.is_up:
            if (request is not None or row.is_dropped) and not row.is_starting:
                row.is_starting = True
                self._to_start.append(index)
                self._start_more()
            return
        if request is None or row.sent is not None or row.is_dropped:
            return
        if not row.is_made and request.continues:
            row.held = None  # its process died with the result of the request before
            death = copy.copy(self._group.deaths[index])  # the one that is kept must not get frames
            self._end(request, Outcome(request, error=death))
            return
        if not row.is_made and not request.makes:
            if self._making >= self._settings.start_concurrency:
                if request not in self._to_make:
                    self._to_make.append(request)
                return
            self._making += 1
            request.makes = True
        row.held, row.sent = None, request
        if self._settings.policy.timeout is not None:
            request.deadline = time.monotonic() + self._settings.policy.timeout
            self._timed[index] = request
        kind, arguments = request.asked.kind, request.asked.arguments
        if kind == "step" and self._opened.is_fast(*arguments):
            self._steps.append(request)
        else:
            self._send_asked(request)

    def _send_asked(self, request: Request) -> None:
        row = self._rows[request.row]
        request.asked.form = row.form if row.is_made else None
        try:
            self._send_message(request.row, {"asked": request.asked})
        except Exception as error:  # it cannot be pickled
            row.sent = None
            self._end(request, Outcome(request, error=error, is_refused=True))

    def _send_message(self, row: int, keywords: dict[str, Any]) -> None:
        channel = self._group.channels[row]
        message = channel.pack(("resets", [0], channel.pack({0: keywords})))
        self._opened.pool.send_reset(
            [row], [(row, message, {})], full=False, calling="reset", in_order=False
        )

    def _send_steps(self, steps: list[Request]) -> None:
        """Sends steps whose actions go through shared memory, together."""
        by_type: dict[type, list[Request]] = {}
        for request in steps:
            by_type.setdefault(type(request.asked.arguments[0]), []).append(request)
        for kind, alike in by_type.items():
            actions: Any = [request.asked.arguments[0] for request in alike]
            try:
                batch = np.stack(actions) if kind is np.ndarray else actions
                self._opened.pool.send(batch, [request.row for request in alike])
            except Exception:  # the environment says what is wrong with an action
                for request in alike:
                    self._send_asked(request)

    # Receiving

    def _receive(
        self,
        rows: list[int],
        observations: Any,
        rewards: Any,
        terminations: Any,
        truncations: Any,
        infos: list[dict[str, Any]],
        errors: dict[int, BaseException],
    ) -> None:
        steps = zip(rewards.tolist(), terminations.tolist(), truncations.tolist(), strict=True)
        for place, (index, info, step) in enumerate(zip(rows, infos, steps, strict=True)):
            row = self._rows[index]
            request, row.sent = row.sent, None
            if request is None:  # work without a result
                row.is_dropped = False
                if row.is_killed:  # the process was quicker than its end, which needs work
                    self._drop_next(index)
            elif index in errors:
                self._end(request, Outcome(request, error=errors[index]))
            elif info and REPLY in info:
                self._reply(request, info[REPLY], step)
            elif info and info == {"infos_lost": True}:  # its process died before it had sent all
                died = self._group.died(index, request.asked.kind)
                self._end(request, Outcome(request, error=died))
            else:
                shown = remade(row.form, observations, place)
                is_step = request.asked.kind == "step"
                self._counts.resets[index] += not is_step
                self._end(
                    request, Outcome(request, (shown, *step, info) if is_step else (shown, info))
                )
            if row.held is not None:
                self._advance(index)

    def _reply(self, request: Request, reply: Reply, step: tuple[float, bool, bool]) -> None:
        """Passes on a reply that came as an object."""
        row = self._rows[request.row]
        value = reply.value
        row.is_made = reply.is_made
        if isinstance(value, Fault):
            self._end(request, Outcome(request, error=value.take_exception()))
            return
        if isinstance(value, Left):  # the process closed its environment: the next one resets it
            self._timed.pop(request.row, None)
            request.asked = dataclasses.replace(request.asked, left=value, remake=False)
            row.held = request
            self._kill(request.row)
            return
        kind = request.asked.kind
        if kind == "reset":
            row.form = reply.form
            self._counts.resets[request.row] += 1
        elif reply.seconds is not None:
            self._counts.count_step(request.row, reply.seconds)
        elif kind == "step" and len(value) == 2:
            observation, info = value
            value = (observation, *step, info)
        self._end(request, Outcome(request, value, spaces=reply.spaces))

    def _end(self, request: Request, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._timed.pop(request.row, None)
        if request.makes:
            request.makes = False
            self._making -= 1
            while self._to_make and self._making < self._settings.start_concurrency:
                waiting = self._to_make.popleft()
                if self._rows[waiting.row].held is waiting:
                    self._advance(waiting.row)

    # Time-outs, deaths and starts

    def _kill_late(self) -> float | None:
        """Ends the requests that took too long; returns the seconds until the next one will."""
        while self._timed:
            request = next(iter(self._timed.values()))
            left = request.deadline - time.monotonic()
            if left > 0:
                return left
            del self._timed[request.row]
            # No task awaits an environment that is made in advance: its row begins again.
            if self._kills_hung or request.asked.kind == "make":
                self._rows[request.row].is_hung = True
                self._group.kill(request.row)
            else:
                self._end(request, Outcome(request, error=self._late(request), is_late=True))
                self._on_outcomes()
        return None

    def _late(self, request: Request) -> WorkerTimeoutError:
        kind, row, seconds = request.asked.kind, request.row, self._settings.policy.timeout
        then = (
            "its process was killed"
            if self._rows[row].is_hung
            else f"the row is still busy: requests to it wait, `await restart({row})` does not"
        )
        return WorkerTimeoutError(
            f"`{kind}` of row {row} has taken {seconds:g} second(s), and {then}",
            env_index=[row],
            workers=[row],
        )

    def _restart(self, index: int) -> None:
        """Ends the request of a row, which has not begun or whose process is killed."""
        row = self._rows[index]
        request, row.held = row.held, None
        if request is not None:
            kind, process = request.asked.kind, self._group.processes[index]
            error = WorkerDiedError(
                f"`restart` ended the `{kind}` of row {index} before it began",
                worker=index,
                env_index=[index],
                pid=0 if process is None else process.pid,
                exitcode=None,
                phase=kind,
            )
            self._end(request, Outcome(request, error=error))
        self._kill(index)

    def _kill(self, index: int) -> None:
        row = self._rows[index]
        if not row.is_up:
            return
        if row.sent is None and not row.is_dropped:
            self._drop_next(index)
        row.is_killed = True
        self._group.kill(index)

    def _drop_next(self, index: int) -> None:
        """Sends work without a result: the pool notices the death of a worker that has some."""
        self._rows[index].is_dropped = True
        self._send_message(index, {})

    def _down(self, index: int) -> None:
        """Ends the request of a row whose process died, and starts another process."""
        row, group = self._rows[index], self._group
        group.reap(index)
        request = row.sent
        died = group.died(index, "step" if request is None else request.asked.kind)
        is_killed = row.is_killed
        late = self._late(request) if row.is_hung and request is not None else None
        if is_killed:  # `died` guesses why the system ended it
            died.args = (f"`restart` ended worker {index}, pid {died.pid}, during {died.phase}",)
        elif late is not None:
            died.args = late.args
        group.deaths[index] = copy.copy(died)
        _, _, filled, _ = self._opened.pool.lost(index)
        row.is_up = row.is_made = row.is_hung = row.is_killed = False
        if not filled:
            row.sent, row.is_dropped = None, request is not None or row.is_dropped
        if request is not None and not filled:
            if not is_killed:
                log_event(
                    logging.WARNING,
                    str(died),
                    event="death" if late is None else "hang",
                    worker=index,
                    env_index=[index],
                    pid=died.pid,
                    phase=request.asked.kind,
                )
            self._end(request, Outcome(request, error=late or died))
        self._advance(index)

    def _start_more(self) -> None:
        while (
            self._to_start
            and not self._closing
            and self._starting < self._settings.start_concurrency
        ):
            index = self._to_start.popleft()
            self._starting += 1
            over, resetting, filled, announced = self._opened.pool.lost(index)
            starting = threading.Thread(
                target=self._start,
                args=(index, over, {own: {} for own in resetting}, announced, filled),
                name="cartwheel-start",
                daemon=True,
            )
            try:
                starting.start()
            except RuntimeError as error:  # the system starts no more threads
                self._inbox.append(functools.partial(self._started, index, 0, filled, error))
                self.wake()

    def _start(
        self,
        index: int,
        over: list[bool],
        resets: dict[int, dict[str, Any]],
        announced: int,
        filled: list[int],
    ) -> None:
        """Starts a process, in a thread of its own."""
        name_this_thread("cartwheel-start")

        # Without a variable for what is appended: its exception has this frame, a cycle.
        def report(pid: int, error: BaseException | None) -> None:
            self._inbox.append(functools.partial(self._started, index, pid, filled, error))

        try:
            group = self._group
            report(replacement.restart(group, index, over, resets, announced, _START_S), None)
        except BaseException as error:
            report(0, error)
        if self.closed.is_set():
            self._inbox.clear()  # nothing reads it any more, and it refers to this object
        self.wake()

    def _started(
        self, index: int, pid: int, filled: list[int], error: BaseException | None
    ) -> None:
        self._starting -= 1
        row = self._rows[index]
        row.is_starting = False
        self._start_more()
        if error is None:
            self._up(index, pid, filled)
        else:
            self._refuse(index, error)

    def _refuse(self, index: int, error: BaseException) -> None:
        """Ends the request that waits for a process that could not be started."""
        row = self._rows[index]
        request, row.held = row.held, None
        if request is not None:
            self._end(request, Outcome(request, error=error))

    def _up(self, index: int, pid: int, filled: list[int]) -> None:
        try:
            self._opened.pool.resume(index, pid, filled)
        except ProcessLookupError:  # it has ended already
            self._group.reap(index)
            self._refuse(index, self._group.died(index, "construct"))
        except OSError as error:  # as without a descriptor to watch it
            self._refuse(index, error)
        else:
            self._rows[index].is_up = True
            self._advance(index)

    # The end

    def _fail_all(self, error: BaseException) -> None:
        """Ends every request with the error that ended the thread."""
        self.failure = error
        while self._inbox:
            with contextlib.suppress(Exception):
                self._read()
        for row in self._rows:
            for request in (row.sent, row.held):
                if request is not None:
                    self.outcomes.append(Outcome(request, error=error))
            row.sent = row.held = None
        self._on_outcomes()

    def _shut_down(self) -> None:
        group, pool = self._group, self._pool
        try:
            if pool is None:
                for row in range(len(self._rows)):
                    group.reap(row)
                group.join(grace=_GRACE_IN_FLIGHT)
                return
            is_busy = any(row.sent is not None for row in self._rows)
            deadline = Deadline(_GRACE_IN_FLIGHT)
            while self._starting and deadline.left():  # a start must not outlive the group
                for index, process in enumerate(group.processes):
                    if self._rows[index].is_starting and process is not None:
                        group.reported.add(index)  # it does not die by itself
                        group.kill(index)
                self._arrived.wait(0.01)
                self._arrived.clear()
                while self._inbox:
                    with contextlib.suppress(Exception):
                        self._read()
            late = pool.close(_GRACE_IN_FLIGHT if is_busy else _GRACE, None)
            if late and not is_busy:
                group.log_late(late, _GRACE, advice="")
            group.join(grace=1.0)
        finally:
            self.closed.set()
            self._inbox.clear()
            self._on_outcomes()
            # Both refer to the rows, which refer to this object and so to the memory: a cycle.
            self._on_outcomes = lambda: None
            for served in self._rows:
                served.sent = served.held = None
