"""A finalizer calls its function once, whatever comes meanwhile."""

import signal
import sys
import threading
import time

from cartwheel._internal.process import Finalizer
from tests.support.repetitions import times


class Owner:
    """An object that can be referred to weakly."""


def test_no_ctrl_c_loses_the_call():
    """Whenever it comes, the function was called, or the next call of the finalizer calls it."""
    owner, calls, came = Owner(), [], 0
    is_armed, is_over = False, threading.Event()
    main = threading.get_ident()

    def interrupt(*_):
        nonlocal is_armed, came
        if is_armed:
            is_armed = False
            came += 1
            raise KeyboardInterrupt

    def send():
        while not is_over.is_set():
            signal.pthread_kill(main, signal.SIGINT)

    sender = threading.Thread(target=send)
    handler, interval = signal.signal(signal.SIGINT, interrupt), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that signals come at any of Python's instructions
    sender.start()
    try:
        enough, give_up = times(20, with_full=200), time.monotonic() + 40
        while came < enough and time.monotonic() < give_up:
            calls.clear()
            finalizer = Finalizer(owner, calls.append, "called")
            try:
                is_armed = True
                finalizer()
            except KeyboardInterrupt:
                pass
            is_armed = False
            finalizer()
            assert calls, f"after {came} signals"
            assert not finalizer.alive
    finally:
        is_over.set()
        sender.join()
        sys.setswitchinterval(interval)
        signal.signal(signal.SIGINT, handler)
    assert came


def test_of_several_threads_one_calls():
    owner, calls = Owner(), []
    for _ in range(times(200, with_full=2000)):
        finalizer = Finalizer(owner, calls.append, 1)
        barrier = threading.Barrier(2)

        def call(finalizer=finalizer, barrier=barrier):
            barrier.wait()
            finalizer()

        thread = threading.Thread(target=call)
        thread.start()
        call()
        thread.join()
        assert len(calls) == 1
        calls.clear()
