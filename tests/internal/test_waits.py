"""Ctrl-C ends a wait of the main thread, also where the system interrupts no call of C.

The signal is handled by another thread of C. So the main thread's call goes on, as it does where a
signal comes right before it.
"""

import itertools
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import cartwheel
from cartwheel._internal import process
from cartwheel._internal.process import slices
from cartwheel.awaitable import envs
from cartwheel.recorder.writer import Writer
from cartwheel.rollouts.collecting.background import Background
from cartwheel.rollouts.collecting.policy_calls import Stopped
from cartwheel.workers.channels import LocalChannel
from tests.support.interrupts import ANY_MOMENT

pytestmark = [
    ANY_MOMENT,
    pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="it signals one thread"),
]

#: Looks of the other thread at the main one, in the same call each time.
LOOKS = 20
#: Seconds after which the end is let come: only in a test that fails.
PATIENCE_S = 20


class Actor:
    is_stopping = is_in_background = False


class Thread:
    """The side of a thread of cartwheel, which goes on when the event is set."""

    def __init__(self):
        self.has_come, self.goes_on = threading.Event(), threading.Event()
        self.last = bool

    def go_on(self):
        self.goes_on.set()
        self.last()

    def __call__(self):
        self.has_come.set()
        self.goes_on.wait()
        return True


def take_a_rollout(thread):
    background = Background(stopped(thread), Actor(), max_waiting=1)
    return background.take, background.close


def stop_the_background(thread):
    background = Background(stopped(thread), Actor(), max_waiting=1)
    with background._lock:
        background._start()
    thread.has_come.wait()
    return background.stop, background.close


def stopped(thread):
    def collect():
        thread()
        raise Stopped

    return collect


def receive_from_a_thread(thread):
    channel = LocalChannel()
    thread.last = lambda: channel.inbox.put((0, None))
    return channel.receive, channel.close


def record_more_than_is_written(thread):
    writer = Writer(limit=1, flush=bool)

    def put():
        for _ in range(3):
            writer.put(thread, 1)

    return put, writer.close


def flush_a_recording(thread):
    writer = Writer(limit=1, flush=bool)
    writer.put(thread, 1)
    return writer.drain, writer.close


def close_a_recording(thread):
    writer = Writer(limit=1, flush=bool)
    writer.put(thread, 1)
    return writer.close, writer.close


def close_awaited_rows(thread):
    class Service:
        owner = os.getpid()
        closed = thread.goes_on

        def close(self):
            pass

    return lambda: envs._end(Service()), bool


WAITS = [
    take_a_rollout,
    stop_the_background,
    receive_from_a_thread,
    record_more_than_is_written,
    flush_a_recording,
    close_a_recording,
    close_awaited_rows,
]


def interrupt_in_the_package(is_over, thread):
    """Interrupts the main thread, once it waits in a call, by a signal that this thread handles."""
    package, main = str(Path(cartwheel.__file__).parent), threading.main_thread().ident
    seen, last = 0, None
    while seen < LOOKS and not is_over.wait(0.001):
        frame = sys._current_frames()[main]
        files, here = [], (frame, frame.f_lasti)
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        is_inside = any(file.startswith(package) for file in files)
        seen, last = (seen + 1 if is_inside and here == last else 0), here
    if is_over.is_set():
        return  # in a test that fails
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    is_over.wait(PATIENCE_S)
    thread.go_on()


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.__name__)
def test_ctrl_c_is_handled_before_the_wait_is_over(wait):
    thread, is_over = Thread(), threading.Event()
    call, close = wait(thread)
    other = threading.Thread(target=interrupt_in_the_package, args=(is_over, thread))
    went_on = None
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come after the wait
            other.start()
            try:
                call()
            finally:
                went_on = thread.goes_on.is_set()
                is_over.set()
    finally:
        is_over.set()
        other.join()
        close()
    assert went_on is False


def test_slices_are_as_long_as_the_wait(monkeypatch):
    clock = iter([10.0, 10.0, 10.1, 10.23, 10.3])
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=clock.__next__))
    assert list(slices(0.25)) == pytest.approx([0.1, 0.1, 0.02])


def test_a_wait_of_no_time_looks_once():
    assert list(slices(0.0)) == [0.0]
    assert next(slices()) > 0


class Told(Exception):
    """Raised by the handlers of these tests."""


@pytest.fixture
def told():
    """Handlers of two signals that raise; the numbers of those that were called."""
    numbers = []

    def tell(number, _frame):
        numbers.append(number)
        raise Told

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_signal_of_an_uninterrupted_block_is_handled_also_where_a_handler_raises(told):
    def run():
        with process.uninterrupted():
            for number in sent:
                signal.raise_signal(number)
            assert not told

    sent = [signal.SIGTERM, signal.SIGINT] * 2000
    with pytest.raises(Told):
        run()
    assert told == sent


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_as_handlers_are_put_back_leaves_none_behind(told, monkeypatch, number):
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    put, is_over = signal.signal, False

    def put_and_raise(*what):
        nonlocal is_over
        before = put(*what)
        if is_over:
            is_over = False
            signal.raise_signal(number)
        return before

    def run():
        nonlocal is_over
        with process.uninterrupted():
            is_over = True

    monkeypatch.setattr(signal, "signal", put_and_raise)
    with pytest.raises(Told):
        run()
    assert told == [number]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_signal_after_an_uninterrupted_block_loses_none_that_was_deferred(told):
    def trace(frame, event, _arg):
        if frame.f_code.co_filename == process.__file__ and event == "line" and is_over:
            lines.append(frame.f_lineno)
            if len(lines) == further:
                signal.raise_signal(signal.SIGINT)
        return trace

    def run():
        nonlocal is_over
        with process.uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            is_over = True

    before = sys.gettrace()
    for further in itertools.count(1):
        lines, is_over = [], False
        told.clear()
        sys.settrace(trace)
        try:
            with pytest.raises(Told):
                run()
        finally:
            sys.settrace(before)
        if len(lines) < further:
            break
        assert sorted(told) == [signal.SIGINT, signal.SIGTERM, signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_signal_is_handled_after_an_uninterrupted_block_and_at_once_in_a_child(number):
    def handle(*_):
        raise TimeoutError

    def run():
        with process.uninterrupted():
            child = os.fork()
            try:
                signal.raise_signal(number)
                is_late = True
            except TimeoutError:
                is_late = False
            if not child:
                os._exit(is_late)
            seen.append((child, is_late))

    before, seen = signal.signal(number, handle), []
    try:
        with pytest.raises(TimeoutError):
            run()
        [(child, is_late)] = seen
        assert is_late
        assert signal.getsignal(number) is handle
        assert os.waitpid(child, 0)[1] == 0
    finally:
        signal.signal(number, before)
