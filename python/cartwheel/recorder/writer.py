"""A thread that writes what the steps hand over."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from cartwheel.worker.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

#: What the thread does; returns whether there is something to flush afterwards.
Task: TypeAlias = "Callable[[], bool]"

#: Seconds after which what was written is flushed, at most.
FLUSH_S = 0.25


class Writer:
    """Runs tasks in their order in a thread of its own, and flushes from time to time.

    The queue is bounded by the bytes that its tasks hold: :meth:`put` waits and drops nothing. An
    error of a task ends the work: the tasks after it are dropped, and :meth:`check` raises it.

    Args:
        limit: The bytes that may wait; a single task may be larger.
        flush: Is called in the thread, at most :data:`FLUSH_S` seconds after a task asked for it.
    """

    def __init__(self, limit: int, flush: Callable[[], None]) -> None:
        """Starts the thread."""
        self._limit, self._flush = limit, flush
        self._tasks: deque[tuple[Task, int]] = deque()
        self._bytes = 0
        self._busy = False
        self._is_closed = False
        self._wants_flush = False
        #: The error that ended the work. An exception that is raised by each call would keep the
        #: frames of the last one, and so the environments.
        self._fault: Fault | None = None
        self._changed = threading.Condition()
        # Ends with the program even if nobody calls `close`; the recorder's finaliser calls it.
        self._thread = threading.Thread(target=self._run, name="cartwheel-recorder", daemon=True)
        self._thread.start()

    def put(self, task: Task, nbytes: int) -> None:
        """Adds a task, then waits while the queue is too long."""
        with self._changed:
            if self._fault is not None:
                return  # `check` tells
            self._tasks.append((task, nbytes))
            self._bytes += nbytes
            self._changed.notify_all()
            # A task that is alone may be larger than the limit.
            self._changed.wait_for(
                lambda: self._bytes <= self._limit or len(self._tasks) <= 1 or self._has_failed()
            )

    def check(self) -> None:
        """Raises the error of the thread, if there was one."""
        if self._fault is not None:
            raise self._fault.take_exception()

    def drain(self) -> None:
        """Waits until everything is written and flushed.

        Raises:
            Exception: As for :meth:`check`.
        """
        with self._changed:
            self._wants_flush = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: (
                    self._has_failed()
                    or not (self._tasks or self._busy or self._wants_flush)
                    or not self._thread.is_alive()
                )
            )
        self.check()

    def close(self) -> None:
        """Writes what is waiting and ends the thread; raises nothing."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _has_failed(self) -> bool:
        return self._fault is not None

    def _run(self) -> None:
        due: float | None = None  # when to flush
        while True:
            with self._changed:
                patience = None if due is None else max(0.0, due - time.monotonic())
                self._changed.wait_for(
                    lambda: bool(self._tasks or self._wants_flush or self._is_closed), patience
                )
                task, nbytes = self._tasks.popleft() if self._tasks else (None, 0)
                is_last = task is None and self._is_closed
                hurry = task is None and (self._wants_flush or self._is_closed)
                if hurry:
                    self._wants_flush = False
                self._busy = True
            try:
                if task is not None and task() and due is None:
                    due = time.monotonic() + FLUSH_S
                if due is not None and (hurry or time.monotonic() >= due):
                    self._flush()
                    due = None
            except BaseException as error:
                self._fail(error)
                due = None
            del task  # and what it holds, before it waits
            with self._changed:
                self._bytes -= nbytes
                self._busy = False
                self._changed.notify_all()
            if is_last:
                return

    def _fail(self, error: BaseException) -> None:
        try:
            self._flush()  # what was written before is good
        except BaseException as second:
            error.__context__ = error.__context__ or second
        with self._changed:
            self._fault = self._fault or Fault.of(None, error, travels=True)
            self._bytes -= sum(nbytes for _, nbytes in self._tasks)
            self._tasks.clear()
