"""This process: deferred interrupts, locks, functions that run at its end, names of its threads."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import signal
import threading
import time
import weakref
from multiprocessing.util import Finalize
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from queue import Queue

T = TypeVar("T")


#: Signals whose handlers often raise: Ctrl-C, a request to end, and a time limit.
_RAISING = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Handles Ctrl-C, SIGTERM and SIGALRM after the block instead of within it.

    For blocks that make a call and record it: between the two, an exception of a handler would lose
    the record. Results of ale-py could be received and not counted, and then be waited for forever;
    a rollout could be requested twice from one of Ray's actors; a process could be started and not
    recorded. Only the main thread handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = ((number, signal.getsignal(number)) for number in _RAISING)
    handlers: dict[int, Any] = {number: handler for number, handler in found if callable(handler)}
    received: collections.deque[tuple[int, Any]] = collections.deque()
    is_over, own = False, os.getpid()

    def defer(number: int, frame: Any) -> None:
        # Another handler may have raised before this one was replaced; children have it, too.
        if is_over or os.getpid() != own:
            handlers[number](number, frame)
        else:
            received.append((number, frame))

    try:
        try:
            # Whatever raises, each is put back: a handler may raise as soon as it was. Until then
            # the others are deferred.
            with contextlib.ExitStack() as stack:
                for number, handler in handlers.items():
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, defer)
                yield
        finally:
            is_over = True
            _handle_all(handlers, received)
    finally:  # the rest, where a further signal raised between two of them
        _handle_all(handlers, received)


def _handle_all(handlers: dict[int, Any], received: collections.deque[tuple[int, Any]]) -> None:
    """Calls the handler of each signal; raises the last of their exceptions."""
    raised = None
    while received:
        try:
            handlers[received[0][0]](*received.popleft())
        except BaseException as error:
            raised = error
    try:
        if raised is not None:
            raise raised
    finally:
        del raised  # whose frames have this one


#: The maximum number of seconds of a wait between two looks for signals.
_SLICE_S = 0.1


def slices(seconds: float | None = None) -> Iterator[float]:
    """Yields time-outs of waits that together are one of ``seconds``; ``None``: without limit.

    For waits for what may take long, such as functions of the user::

        any(event.wait(slice) for slice in slices(seconds))

    CPython looks for signals before a wait in C, and a signal ends the wait. One that comes between
    the two, or that the system hands to another thread, is handled after the wait. So each wait is
    short.

    Locks are not acquired in slices: a Ctrl-C after the one that acquires, or in a ``__exit__`` of
    Python, would leave the lock without an owner. ``with`` and a lock of ``threading`` are safe.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    while deadline is None or (left := deadline - time.monotonic()) > _SLICE_S:
        yield _SLICE_S
    yield max(0.0, left)


def take(queue: Queue[T] | SimpleQueue[T], seconds: float | None = None) -> T:
    """Takes from a queue, in :func:`slices`.

    Raises:
        queue.Empty: Nothing came in time.
    """
    for left in slices(seconds):
        with contextlib.suppress(Empty):
            return queue.get(timeout=left)
    raise Empty


class News:
    """Wakes threads that wait for one which changes what a lock guards.

    For those who wait where Ctrl-C may come: after one in a condition, or in its ``with``, the lock
    could stay held without an owner.
    """

    def __init__(self) -> None:
        self._told: SimpleQueue[None] = SimpleQueue()
        self._waiting = 0

    def expect(self) -> None:
        """This thread is going to wait; it has the lock, and leaves it before it does."""
        self._waiting += 1

    def wait(self, seconds: float | None = None) -> None:
        """Waits to be told.

        Raises:
            queue.Empty: It was not told in time.
        """
        take(self._told, seconds)

    def tell(self) -> None:
        """Wakes all who expect it; the caller has the lock."""
        for _ in range(self._waiting):
            self._told.put(None)
        self._waiting = 0


def process_lock(if_held: Callable[[], object] = lambda: None) -> Any:
    """Returns a lock that no thread holds in a forked child: one that held it does not exist there.

    It is a ``threading.RLock``: a signal handler may need it while its thread holds it, and no
    Ctrl-C can come between the end of a ``with`` block and the release.

    Args:
        if_held: Called in a child that was forked while a thread held the lock.
    """
    lock: Any = threading.RLock()

    def renew() -> None:
        is_held = lock._is_owned() or not lock.acquire(blocking=False)
        lock._at_fork_reinit()  # as Python renews its own
        if is_held:
            if_held()

    os.register_at_fork(after_in_child=renew)
    return lock


#: Its attribute ``is_own`` is there in the threads that cartwheel started.
_here = threading.local()


def name_this_thread(name: str) -> None:
    """Gives a thread of cartwheel, which calls this at its beginning, a name of at most 15 bytes.

    ``top -H`` and debuggers show it.

    Before Python 3.14, only Python knows the name of a :class:`threading.Thread`. Systems without
    ``/proc`` show no name.
    """
    _here.is_own = True
    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name, "ascii")


#: Any priority: later finalizers of the same priority are called first.
_EXIT_PRIORITY = 10


class Finalizer:
    """Calls a function once: when its owner is collected, when this process ends, or on demand.

    A call that Ctrl-C ends does not count: the function is called again, and does the rest.

    ``weakref.finalize`` promises the same, but its functions are called at the place that its first
    use has in the order of ``atexit``. In a program that began with
    ``tempfile.TemporaryDirectory()``, ``multiprocessing`` has by then terminated its daemonic
    children and waited forever for the others; and in a process of ``multiprocessing`` they are not
    called at all. The finalizers of ``multiprocessing`` are called in both cases, before anything
    happens to children, the last one first.

    A garbage collection runs in any thread. In one of cartwheel's own, which may be the thread that
    the function waits for or hold a lock that it needs, another thread calls it.

    A child that was forked from this process never calls the function.

    The owner keeps this object, and the program refers to it by a weak reference alone. So the
    function may refer to the owner, as the function that ends a vector environment does where an
    environment refers to it: then both are garbage together, which a garbage collection ends.

    Attributes:
        alive: Whether the function is still to be called in this process.
    """

    def __init__(self, owner: object, function: Callable[..., object], *args: object) -> None:
        """Registers the function.

        Args:
            owner: The object.
            function: The function. If it or ``args`` refer to the object, only a garbage collection
                calls it before the process ends.
            *args: Its first arguments.
        """
        self._pid = os.getpid()
        #: The call that is still to be made, under 0.
        self._calls = {0: functools.partial(function, *args)}
        #: Takes it; ``None`` if another thread has. ``pop`` is atomic: one thread calls it.
        self._take = functools.partial(self._calls.pop, 0, None)
        here = weakref.ref(self)
        self._at_end = Finalize(owner, _call, args=(here,), exitpriority=_EXIT_PRIORITY)

    @property
    def alive(self) -> bool:
        """Whether the function is still to be called in this process."""
        return bool(self._calls) and os.getpid() == self._pid

    def __call__(self, *args: object) -> None:
        """Calls the function with further arguments, unless it was called or detached."""
        if not self.alive:
            return
        # A loop takes it: Python handles signals after a call, before it stores the result, and a
        # Ctrl-C would lose what was taken. It handles none before the `try`, nor in the `except`.
        for call in iter(self._take, None):
            try:
                call(*args)
            except KeyboardInterrupt:  # what it did not do is done by the next call, or at the end
                self._calls[0] = call
                raise
            self._at_end.cancel()

    def detach(self) -> None:
        """Cancels the call."""
        self._calls.clear()
        self._at_end.cancel()

    def __del__(self) -> None:
        """Calls the function when this object is garbage, together with its owner.

        Weak references are cleared by then, but the objects that the function refers to are intact.
        """
        self.call_for_collection()

    def call_for_collection(self) -> None:
        """Calls the function, unless it was called, without a wait of a thread for itself."""
        if self.alive and hasattr(_here, "is_own"):
            with contextlib.suppress(RuntimeError):  # there can be no more threads
                threading.Thread(target=self, name="cartwheel-end", daemon=False).start()
                return
        self()


def _call(finalizer: weakref.ref[Finalizer]) -> None:
    called = finalizer()
    if called is not None:
        called.call_for_collection()
