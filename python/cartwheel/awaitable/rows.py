"""Requests to rows, in the thread of an event loop: their order, their futures and their results.

A row has at most one request in flight, and one more that waits if the first was abandoned: its
task was cancelled, or its time ran out. What the first one did to the row stands, its result is
dropped, and then the second one is checked and sent.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import enum
import os
import threading
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel._internal.reset_arguments import copied
from cartwheel.awaitable.requests import Request
from cartwheel.awaitable.service import Service
from cartwheel.errors import (
    BrokenPoolError,
    EpisodeOverError,
    ForkedProcessError,
    WorkerDiedError,
    WorkerTimeoutError,
    add_note,
    is_raised_by_env,
)
from cartwheel.workers.faults import described
from cartwheel.workers.restart_policy import MAX_TEXT

if TYPE_CHECKING:
    from cartwheel.awaitable.requests import Outcome, Settings
    from cartwheel.workers.serving.awaited_env import Asked

#: How often a reset is made again whose process died or whose environment failed.
_ATTEMPTS = 3


class Phase(enum.Enum):
    """The state of a row, as the last result left it."""

    UNSTARTED = enum.auto()
    RUNNING = enum.auto()
    OVER = enum.auto()
    #: A failure ended the episode, and the policy has hidden it: perhaps there is no environment.
    CUT = enum.auto()
    FAILED = enum.auto()


#: The states of a row whose environment has an episode.
_BEGUN = (Phase.RUNNING, Phase.OVER)


@dataclasses.dataclass(slots=True)
class _Row:
    """A row.

    Attributes:
        phase: Its state.
        current: The request in flight.
        waiting: The request that is sent after one that was abandoned.
        shown: The last observation, where a failed step shows it again.
        failures: Failures that did not raise.
        remakes: Whether the environment failed, and the next reset makes another one.
        overtaken: The request that was in flight when the row was restarted.
    """

    phase: Phase = Phase.UNSTARTED
    current: Request | None = None
    waiting: Request | None = None
    shown: Any = None
    failures: int = 0
    remakes: bool = False
    overtaken: Request | None = None


class Rows:
    """The rows of one object, and the loop that uses them.

    Attributes:
        spaces: Observation and action space of the first row that described itself.
        loop: The loop that used it last.
    """

    def __init__(self, env_fns: list[bytes], settings: Settings) -> None:
        self.spaces = settings.spaces
        self._name = settings.name
        self._policy = policy = settings.policy
        effects = (policy.on_error, policy.on_worker_death, policy.on_timeout)
        #: Whether a failed step may show the last observation.
        self._shows_again = "restart" in effects
        self._rows = [_Row() for _ in env_fns]
        self.loop: asyncio.AbstractEventLoop | None = None
        #: Held while a loop becomes that one, since two may come at the same instant.
        self._entering = threading.Lock()
        self._is_waking = False
        #: The loop that is about to take outcomes.
        self._taking: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        #: Futures of tasks that wait for the end.
        self._ends: list[asyncio.Future[None]] = []
        #: Tasks that wait for a free row, and rows that are not lent.
        self._borrowers: collections.deque[asyncio.Future[int]] = collections.deque()
        self._free = collections.deque(range(len(env_fns)))
        self.service = Service(env_fns, settings, self._has_outcomes)
        self.service.start()

    # The loop

    def enter(self) -> asyncio.AbstractEventLoop:
        """Returns the running loop, to which this object belongs from now on.

        Raises:
            RuntimeError: No loop is running, or another running loop uses this object.
            gymnasium.error.ClosedEnvironmentError: It is closed.
            ForkedProcessError: Another process made it.
            BrokenPoolError: It is broken.
        """
        if os.getpid() != self.service.owner:  # where the loop of the parent does not run
            raise ForkedProcessError(
                f"this {self._name} belongs to process {self.service.owner}: make another one in "
                "this process"
            )
        loop = asyncio.get_running_loop()
        if self.loop is loop and not self._is_closed and self.service.failure is None:
            return loop
        with self._entering:
            return self._belong_to(loop)

    def _belong_to(self, loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise self._closed_error()
        if self.service.failure is not None:
            raise BrokenPoolError(
                f"this {self._name} is broken and can only be closed: {self.service.failure}"
            ) from self.service.failure
        if self.loop is not None and self.loop.is_running():
            raise RuntimeError(
                f"this {self._name} is used by another event loop, which is running: make one for "
                "each loop"
            )
        if self.loop is not loop:
            self._leave_loop()
            self.loop, self._is_waking = loop, False
            self._take_outcomes()
        return loop

    def _leave_loop(self) -> None:
        """Cancels what tasks of the last loop await. It has ended, but it may run again."""
        futures: list[asyncio.Future[Any]] = list(self._borrowers)
        for row in self._rows:
            futures += [one.future for one in (row.current, row.waiting) if one is not None]
            if row.current is not None:
                row.current.is_abandoned = True
            row.waiting = None
        self._borrowers.clear()
        self._free = collections.deque(range(len(self._rows)))
        for future in filter(_is_open, futures):
            future.cancel(f"another event loop uses this {self._name}")

    def _closed_error(self) -> gym.error.ClosedEnvironmentError:
        return gym.error.ClosedEnvironmentError(
            f"Trying to operate on `{self._name}`, after a call to `close()`."
        )

    def _wake(self) -> None:
        self._is_waking = False
        self.service.wake()
        if self.service.closed.is_set():  # by another thread, since the request was checked
            self._take_outcomes()

    def _send(self, row: _Row, request: Request) -> None:
        """Sends a request, together with others of this turn of the loop."""
        if row.remakes and request.asked.kind == "reset":
            request.asked, row.remakes = dataclasses.replace(request.asked, remake=True), False
        request.continues = request.asked.kind != "reset" and row.phase in _BEGUN
        row.current = request
        self.service.post(request)
        self._wake_soon()

    def _wake_soon(self) -> None:
        if not self._is_waking:
            assert self.loop is not None, "a loop has entered"
            self._is_waking = True
            self.loop.call_soon(self._wake)

    def _has_outcomes(self) -> None:
        """Called by the thread of the service, after it left the outcomes."""
        loop = self.loop
        if loop is None or self._taking is loop:
            return
        self._taking = loop
        with contextlib.suppress(RuntimeError):  # the loop is closed: the next one takes them
            loop.call_soon_threadsafe(self._take_outcomes)

    def _take_outcomes(self) -> None:
        """Takes outcomes, in the thread of the loop."""
        self._taking = None  # first: what is left from here on is announced again
        outcomes = self.service.outcomes
        while outcomes:
            self._finish(outcomes.popleft())
        if self.service.closed.is_set():
            self._fail_all()
            ends, self._ends = self._ends, []
            for end in ends:
                if _is_open(end):
                    end.set_result(None)

    # Requests

    async def ask(self, index: int, asked: Asked) -> Any:
        """Sends a request to a row and waits for its result."""
        loop = self.enter()
        row = self._rows[index]
        request = Request(index, asked, loop.create_future())
        if row.current is None:
            self._check(index, asked)
            self._send(row, request)
        elif not row.current.awaits() and not (row.waiting and row.waiting.awaits()):
            row.waiting = request
            if row.current.is_late:
                self._limit(row, request)
        else:
            busy = row.current if row.current.awaits() else row.waiting
            assert busy is not None, "one of the two is awaited"
            raise gym.error.AlreadyPendingCallError(
                f"row {index} is busy: another task awaits its `{busy.asked.kind}`. A row does one "
                "thing at a time: await it first, or use another row",
                busy.asked.kind,
            )
        try:
            return await request.future
        except asyncio.CancelledError:
            if row.waiting is request:
                row.waiting = None
            request.is_abandoned = True
            raise
        finally:
            if request.limit is not None:
                request.limit.cancel()
            del request  # its future has the exception, whose frames have this one

    def _limit(self, row: _Row, request: Request) -> None:
        """Lets a request wait for a row that is late as long as any request may take."""
        assert self.loop is not None, "a loop has entered"
        assert self._policy.timeout is not None, "without a limit no row is late"
        request.limit = self.loop.call_later(self._policy.timeout, self._give_up, row, request)

    def _give_up(self, row: _Row, request: Request) -> None:
        """Ends the wait of a request for a row that is late, unless a restart ends that."""
        if row.waiting is not request or row.current is None or row.overtaken is row.current:
            return
        row.waiting = None
        index, kind, busy = request.row, request.asked.kind, row.current.asked.kind
        error = WorkerTimeoutError(
            f"`{kind}` of row {index} has waited {self._policy.timeout:g} second(s) for the end of "
            f"a `{busy}` that was late before: `await restart({index})` does not wait",
            env_index=[index],
            workers=[index],
        )
        request.is_abandoned = True
        _fail(request, error)

    def _check(self, index: int, asked: Asked) -> None:
        """Raises if the row cannot be stepped."""
        phase = self._rows[index].phase
        if asked.kind != "step" or phase is Phase.RUNNING:
            return
        if phase in (Phase.OVER, Phase.CUT):
            raise EpisodeOverError(
                [index],
                f"the episode of row {index} is over: await reset({index}) before the next step",
            )
        why = "failed" if phase is Phase.FAILED else "was never reset, or was restarted"
        raise gym.error.ResetNeeded(f"row {index} {why}: await reset({index}) before the next step")

    def restart(self, index: int) -> None:
        """Kills the process of a row."""
        self.enter()
        row = self._rows[index]
        row.phase, row.remakes, row.shown = Phase.UNSTARTED, False, None
        if row.current is not None:
            row.current.is_abandoned, row.overtaken = True, row.current
        self.service.restart(index)
        self._wake_soon()

    # Results

    def _finish(self, outcome: Outcome) -> None:
        request = outcome.request
        row = self._rows[request.row]
        if outcome.spaces is not None and self.spaces is None:
            self.spaces = outcome.spaces
        if row.current is not request:
            return  # of a loop that ended, or only to make the environment
        if outcome.is_late:
            request.is_abandoned = request.is_late = True
            _fail(request, outcome.error)
            if row.waiting is not None and row.waiting.awaits():
                self._limit(row, row.waiting)
            return
        row.current = None
        if outcome.is_refused or (outcome.error is not None and row.overtaken is request):
            _fail(request, outcome.error)  # neither is a failure, which a policy may hide
            row.remakes |= request.asked.remake
        elif outcome.error is not None:
            self._failed(row, request, outcome.error)
        else:
            self._succeeded(row, request, outcome.value)
        if row.overtaken is request:  # whatever it did was lost with its process
            row.phase, row.remakes, row.overtaken = Phase.UNSTARTED, False, None
        waiting, row.waiting = row.waiting, None
        if waiting is None or not waiting.awaits():
            return
        if row.current is not None:  # a reset that is made once more
            row.waiting = waiting
            return
        try:
            self._check(waiting.row, waiting.asked)
        except Exception as error:
            _fail(waiting, error)
        else:
            self._send(row, waiting)

    def _succeeded(self, row: _Row, request: Request, value: Any) -> None:
        kind = request.asked.kind
        if kind == "reset":
            row.phase = Phase.RUNNING
        elif kind == "step":
            row.phase = Phase.OVER if value[2] or value[3] else Phase.RUNNING
        if kind != "call" and self._shows_again:
            row.shown = copied(value[0])  # the caller may write into its own
        _succeed(request, value)

    def _failed(self, row: _Row, request: Request, error: BaseException) -> None:
        """Follows the policy for failures."""
        kind = request.asked.kind
        in_process = not _has_died(error) and not _is_late(error)
        if kind == "call" and in_process:
            _fail(request, error)
            return
        row.phase = Phase.FAILED
        restarts = self._restarts_after(error)
        if restarts and not self._policy.allows(row.failures):
            add_note(error, f"the row failed {row.failures} times before (max_restarts)")
            restarts = False
        row.remakes = in_process and restarts
        # A process may have died while its row was idle, so a reset is made once more in any case.
        again = _has_died(error) and request.attempts == 0
        if kind == "reset" and request.awaits() and (restarts or again):
            if request.attempts < _ATTEMPTS - 1:
                request.attempts += 1
                row.failures += restarts
                self._send(row, request)
                return
        elif kind == "step" and restarts:
            row.failures += 1
            row.phase = Phase.CUT
            info = (
                {"env_error": _text(error)[:MAX_TEXT]} if in_process else {"worker_restarted": True}
            )
            _succeed(request, (row.shown, 0.0, False, True, info))
            return
        _fail(request, error)

    def _restarts_after(self, error: BaseException) -> bool:
        """Whether a failure truncates the episode, rather than raise."""
        if _has_died(error):
            return self._policy.on_worker_death == "restart"
        if _is_late(error):
            return self._policy.on_timeout == "restart"
        return self._policy.on_error == "restart" and isinstance(error, Exception)

    # Rows that are lent

    async def borrow(self) -> int:
        """Waits for a row that is not lent, first come, first served."""
        loop = self.enter()
        if self._free and not self._borrowers:
            return self._free.popleft()
        future: asyncio.Future[int] = loop.create_future()
        self._borrowers.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.give_back(future.result())
            raise

    def give_back(self, index: int) -> None:
        """Gives a row to the task that has waited longest."""
        while self._borrowers:
            future = self._borrowers.popleft()
            if not future.done():
                future.set_result(index)
                return
        self._free.append(index)

    # The end

    def refuse(self) -> None:
        """Refuses requests from now on, in any thread."""
        self._is_closed = True

    def close(self) -> None:
        """Begins to close. Tasks that wait get an exception."""
        if os.getpid() != self.service.owner:
            return
        self.refuse()
        self._fail_all()
        while self._borrowers:
            future = self._borrowers.popleft()
            if _is_open(future):
                future.set_exception(self._closed_error())
        self.service.close()

    def _fail_all(self) -> None:
        for row in self._rows:
            for request in (row.current, row.waiting):
                if request is not None:
                    _fail(request, self._closed_error())
            row.current = row.waiting = None

    def forget_loop(self) -> None:
        """Drops a loop that is closed, and the outcomes that it has not taken.

        One that closed while the thread announced an outcome refers to this object, and so does
        the traceback of an outcome that is an error: cycles.
        """
        self.loop = self._taking = None
        self.service.outcomes.clear()

    async def closed(self) -> None:
        """Waits for the end; in a forked child, which has no part in it, not at all."""
        if os.getpid() != self.service.owner:
            return
        end = asyncio.get_running_loop().create_future()
        self._ends.append(end)
        if self.loop is not asyncio.get_running_loop():
            self.loop = asyncio.get_running_loop()
        if self.service.closed.is_set():
            self._take_outcomes()
        await end


def _has_died(error: BaseException) -> bool:
    """Whether the process of a row died. An environment may raise such an error of its own rows."""
    return isinstance(error, WorkerDiedError) and not is_raised_by_env(error)


def _is_late(error: BaseException) -> bool:
    """Whether a row took too long, likewise."""
    return isinstance(error, WorkerTimeoutError) and not is_raised_by_env(error)


def _is_open(future: asyncio.Future[Any]) -> bool:
    """Whether a task may still get a result."""
    return not future.done() and not future.get_loop().is_closed()


def _succeed(request: Request, value: Any) -> None:
    if _is_open(request.future):
        request.future.set_result(value)


def _fail(request: Request, error: BaseException | None) -> None:
    assert error is not None, "a request that failed has an exception"
    if isinstance(error, StopIteration):  # a future refuses it, and a coroutine cannot raise it
        text = f"the environment of row {request.row} raised StopIteration({error.value!r})"
        stopped, error = error, RuntimeError(text)
        error.__cause__ = stopped
    if _is_open(request.future):
        request.future.set_exception(error)


def _text(error: BaseException) -> str:
    """Returns type and text of an exception, without its notes."""
    text, _ = described(error)
    for note in reversed(getattr(error, "__notes__", [])):
        text = text.removesuffix(note).rstrip()
    return text
