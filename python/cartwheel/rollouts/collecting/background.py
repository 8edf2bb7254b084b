"""A thread that collects ahead of the caller, and its queue of rollouts."""

from __future__ import annotations

import collections
import os
import queue
import threading
import time
from typing import TYPE_CHECKING

from cartwheel._internal.logging import LOGGER
from cartwheel._internal.process import News, name_this_thread, uninterrupted
from cartwheel.errors import ForkedProcessError
from cartwheel.rollouts.collecting.policy_calls import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.rollout import Rollout

#: Seconds that a thread gets to end: one call of the policy and one step of the environments.
GRACE = 30.0


class Background:
    """Collects in a thread until ``max_waiting`` rollouts wait; starts it again where it ended.

    The thread ends by :meth:`stop`, and by an exception, which the next :meth:`take` raises after
    the rollouts that were complete before. It refers to no :class:`~cartwheel.Collector`, so that
    one without references is collected as garbage and its thread ends.

    Args:
        collect: Returns the next rollout; in this thread it raises ``Stopped`` when ``actor`` is
            stopping.
        actor: Its ``is_stopping`` ends the thread between two calls.
        max_waiting: Rollouts that may wait.
    """

    def __init__(self, collect: Callable[[], Rollout], actor: Actor, max_waiting: int) -> None:
        self._collect, self._actor, self._max_waiting = collect, actor, max_waiting
        self._rollouts: collections.deque[Rollout] = collections.deque()
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        #: Wakes the thread, which wakes the other side.
        self._changed, self._news = threading.Condition(self._lock), News()
        #: Whether a thread collects or waits for room, and which of them may. `Thread.join` and
        #: `Thread.is_alive` do not serve: after a Ctrl-C in `join` they say that it has ended.
        self._runs, self._turn = False, 0
        self._thread: threading.Thread | None = None
        self._owner = os.getpid()
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Whether the thread collects or waits for room."""
        return self._runs

    def take(self) -> Rollout:
        """Waits for the next rollout.

        Raises:
            ForkedProcessError: This process was forked; the thread lives in its parent.
            RuntimeError: Another thread closes the collector.
            Exception: The policy or an environment raised it in the thread.
        """
        if os.getpid() != self._owner:
            raise ForkedProcessError(
                "this collector collects in a thread of the parent process: make vector "
                "environments and a collector in this process"
            )
        while True:
            with self._lock:
                if self._rollouts:
                    self._changed.notify_all()
                    if self._error is None:
                        self._start()
                    return self._rollouts.popleft()  # last, so that a Ctrl-C loses none
                if self._error is not None:
                    raise self._take_error()
                if self._is_closed:
                    raise RuntimeError(
                        "`collect` waited for a rollout when the collector was closed."
                    )
                self._start()  # also where an interrupted `stop` ends the thread after all
                self._news.expect()
            self._news.wait()

    def _take_error(self) -> BaseException:
        error, self._error = self._error, None
        assert error is not None, "there is one"
        return error

    def stop(self) -> None:
        """Ends the thread after the call that it is in; complete rollouts wait.

        Raises:
            RuntimeError: The call takes longer than 30 seconds.
        """
        if os.getpid() != self._owner:
            return
        self._actor.is_stopping = True
        deadline = time.monotonic() + GRACE
        while True:
            with self._lock:
                self._turn += 1  # one that has not begun yet will not
                self._changed.notify_all()
                if not self._runs:
                    self._actor.is_in_background = self._actor.is_stopping = False
                    thread, self._thread = self._thread, None
                    break
                self._news.expect()
            try:
                self._news.wait(max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                raise RuntimeError(
                    f"the collector's thread is still in a call of the policy or of the "
                    f"environments after {GRACE:.0f} seconds: end that call first"
                ) from None
        if thread is not None and thread.ident is not None:  # it was started
            thread.join(GRACE)

    def close(self) -> None:
        """Ends the thread for good, and the wait of another thread.

        Raises:
            RuntimeError: As for :meth:`stop`.
        """
        self._is_closed = True
        if os.getpid() != self._owner:  # the thread may have held the lock at the fork
            return
        self.stop()
        with self._lock:
            self._rollouts.clear()
            self._error = None  # it has frames of the thread, and they have this object
            self._news.tell()

    def drop(self) -> None:
        """Forgets complete rollouts and an exception; the thread must have ended."""
        self._rollouts.clear()
        self._error = None

    def end(self) -> None:
        """Ends the thread at the end of the program, with a warning where that is not possible."""
        try:
            self.close()
        except RuntimeError:
            LOGGER.warning("the thread of a collector did not end", exc_info=True)

    def _start(self) -> None:
        """Starts a thread, if none runs; the caller has the lock."""
        if not self._runs:
            self._actor.is_stopping = False  # a `stop` may have been interrupted
            self._actor.is_in_background = True
            self._turn += 1
            self._thread = threading.Thread(
                target=self._run, args=(self._turn,), name="cartwheel-collector", daemon=True
            )
            with uninterrupted():  # otherwise it could wait forever to be noted as started
                self._thread.start()

    def _run(self, turn: int) -> None:
        with self._lock:
            if self._runs or turn != self._turn:
                return
            self._runs = True
        name_this_thread("cartwheel-coll")
        try:
            self._collect_until_stopped()
        finally:
            with self._lock:
                self._runs = False
                self._news.tell()

    def _collect_until_stopped(self) -> None:
        try:
            while not self._actor.is_stopping:
                rollout = self._collect()
                with self._lock:
                    self._rollouts.append(rollout)
                    self._news.tell()
                    del rollout
                    while len(self._rollouts) >= self._max_waiting and not self._actor.is_stopping:
                        self._changed.wait()
        except Stopped:
            pass
        except BaseException as error:  # the caller's thread raises it
            with self._lock:
                self._error = error
