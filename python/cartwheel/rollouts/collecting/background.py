"""A thread that collects, and the rollouts that it is ahead."""

from __future__ import annotations

import collections
import os
import threading
from typing import TYPE_CHECKING

from cartwheel.errors import ForkedProcessError
from cartwheel.log import LOGGER
from cartwheel.rollouts.collecting.actor import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.rollouts.collecting.actor import Actor
    from cartwheel.rollouts.rollout import Rollout

#: Seconds that a thread gets to end: one call of the policy and one step of the environments.
GRACE = 30.0


class Background:
    """Collects in a thread until ``queue`` rollouts wait; starts it again where it ended.

    The thread ends by :meth:`stop`, and by an exception, which the next :meth:`take` raises after
    the rollouts that were complete before. It refers to no :class:`~cartwheel.Collector`, so that
    one that nobody refers to any more is collected as garbage and its thread ends.

    Args:
        collect: Returns the next rollout; in this thread it raises ``Stopped`` when ``actor`` says
            so.
        actor: Whose ``stopping`` ends the thread between two calls.
        queue: Rollouts that may wait.
    """

    def __init__(self, collect: Callable[[], Rollout], actor: Actor, queue: int) -> None:
        """Starts nothing yet."""
        self._collect, self._actor, self._queue = collect, actor, queue
        self._rollouts: collections.deque[Rollout] = collections.deque()
        self._error: BaseException | None = None
        self._changed = threading.Condition()
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
        with self._changed:
            while not self._rollouts and self._error is None:
                if self._is_closed:
                    raise RuntimeError(
                        "`collect` waited for a rollout when the collector was closed."
                    )
                self._start()  # also where an interrupted `stop` ends the thread after all
                self._changed.wait()
            if self._rollouts:
                self._changed.notify_all()
                if self._error is None:
                    self._start()
                return self._rollouts.popleft()  # last, so that a Ctrl-C loses none
            error, self._error = self._error, None
        assert error is not None
        raise error

    def stop(self) -> None:
        """Ends the thread after the call that it is in; complete rollouts wait.

        Raises:
            RuntimeError: The call takes longer than 30 seconds.
        """
        if os.getpid() != self._owner:
            return
        self._actor.stopping.set()
        with self._changed:
            self._turn += 1  # one that has not begun yet will not
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: not self._runs, GRACE):
                raise RuntimeError(
                    f"the collector's thread is still in a call of the policy or of the "
                    f"environments after {GRACE:.0f} seconds: end that call first"
                )
            self._actor.is_in_background = False
            self._actor.stopping.clear()
            thread, self._thread = self._thread, None
        if thread is not None and thread.ident is not None:  # it was started
            thread.join(GRACE)

    def close(self) -> None:
        """Ends the thread for good, and the wait of another thread.

        Raises:
            RuntimeError: As for :meth:`stop`.
        """
        self._is_closed = True
        self.stop()
        with self._changed:
            self._rollouts.clear()
            self._changed.notify_all()

    def drop(self) -> None:
        """Forgets complete rollouts and an exception; the thread must have ended."""
        self._rollouts.clear()
        self._error = None

    def end(self) -> None:
        """Ends the thread, and says it where that is not possible: for the end of the program."""
        try:
            self.close()
        except RuntimeError:
            LOGGER.warning("the thread of a collector did not end", exc_info=True)

    def _start(self) -> None:
        """Starts a thread, if none runs; the caller has the lock."""
        if not self._runs:
            self._actor.stopping.clear()  # a `stop` may have been interrupted
            self._actor.is_in_background = True
            self._turn += 1
            self._thread = threading.Thread(
                target=self._run, args=(self._turn,), name="cartwheel-collector", daemon=True
            )
            self._thread.start()

    def _run(self, turn: int) -> None:
        with self._changed:
            if self._runs or turn != self._turn:
                return
            self._runs = True
        try:
            self._collect_until_stopped()
        finally:
            with self._changed:
                self._runs = False
                self._changed.notify_all()

    def _collect_until_stopped(self) -> None:
        try:
            while not self._actor.stopping.is_set():
                rollout = self._collect()
                with self._changed:
                    self._rollouts.append(rollout)
                    self._changed.notify_all()
                    del rollout
                    while len(self._rollouts) >= self._queue and not self._actor.stopping.is_set():
                        self._changed.wait()
        except Stopped:
            pass
        except BaseException as error:  # the caller's thread raises it
            with self._changed:
                self._error = error
