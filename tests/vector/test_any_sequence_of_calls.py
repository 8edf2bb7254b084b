"""Calls in any order, while workers die or are interrupted, give the results of a model."""

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import threading
import warnings
from collections import Counter

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import cartwheel
from tests.support.interrupts import ANY_MOMENT
from tests.support.ledger import RAISE
from tests.support.random_examples import Phase, settings, st
from tests.support.repetitions import times
from tools.soak import MODES, Session

pytestmark = [ANY_MOMENT, pytest.mark.usefixtures("spinning")]

ROWS = 3
#: Seconds that a step takes: some are longer than a time-out.
PAUSES_S = (0, 0.01)
WIDTH = 200  # wide enough for observations that are views of shared memory
ACTIONS = st.lists(st.sampled_from([0, 1, 2, 0, 1, 2, RAISE]), min_size=ROWS, max_size=ROWS)
SEEDS = st.integers(0, 999)
EXECUTORS = ["process", "process", "process", "process", "thread", "inline"]
TIMEOUTS = st.sampled_from([None, 0, 1e-3])
SOME_ROWS = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS, unique=True)


class Calls(RuleBasedStateMachine):
    """A vector environment, the model of its rows, and the calls that are pending."""

    @initialize(executor=st.sampled_from(EXECUTORS), seed=SEEDS)
    def open(self, executor, seed, mode=None):
        self.executor = executor
        self.draw = random.Random(seed)
        self.mode = mode or self.draw.choice(MODES)
        self.session = Session(
            self.draw,
            Counter(),
            rows=ROWS,
            workers=2,
            mode=self.mode,
            executor=executor,
            width=WIDTH,
            pauses=PAUSES_S,
        )
        self.envs = self.session.envs
        #: The call that was begun and not yet waited for, and what is needed to check its result.
        self.pending = None
        #: What was sent and not yet received, by row.
        self.sent = {}
        #: Whether a wait for one of these was given up.
        self.late = False
        #: Whether Ctrl-C ended that wait. If it came before the pool began to wait, the pool does
        #: not know of it.
        self.interrupted = False
        #: Whether the main thread is in a wait that Ctrl-C may end.
        self.waiting = False
        #: Calls since `open`.
        self.calls = 0
        #: Observations, with copies from when they were received.
        self.kept = []
        self.reset(seed)

    def teardown(self):
        self.end()

    def end(self):
        if not hasattr(self, "envs"):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a pending call
            self.envs.close()

    @property
    def busy(self):
        return self.pending is not None or bool(self.sent)

    def over(self, rows):
        """Whether the mode forbids stepping these rows."""
        return self.mode == "Disabled" and any(self.session.rows[row].over for row in rows)

    def keep(self, observations):
        self.kept.append((observations, observations.copy()))

    def settle(self, wait, check):
        """Waits; a result is compared with the model, and its call is no longer pending."""
        try:
            self.waiting = True
            result = wait()
            self.waiting = False
        except multiprocessing.TimeoutError:
            self.waiting, self.late, self.interrupted = False, True, False
        except KeyboardInterrupt:
            self.late = self.interrupted = True
            if self.envs._pool.pending() is None and not self.envs.in_flight:
                self.reset(0)  # Ctrl-C came after the wait: the result is lost
        else:
            self.late = self.interrupted = False
            check(result)

    def dropping_what_is_late(self, reset):
        """Calls ``reset``, which drops late results; if the pool refuses, waits for them first."""
        try:
            return reset()
        except AlreadyPendingCallError:
            assert self.interrupted
            self.take()
            return reset()

    # Calls that do everything at once

    @rule(seed=SEEDS)
    def reset(self, seed):
        if self.busy and not self.late:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.reset(seed=seed)
            return
        observations, infos = self.dropping_what_is_late(lambda: self.envs.reset(seed=seed))
        self.pending, self.late = None, False
        self.sent.clear()
        self.check_reset(seed, (observations, infos))

    def check_reset(self, seed, result):
        seeds = [seed + row for row in range(ROWS)]
        self.session.check_reset(*result, seeds, np.ones(ROWS, bool))
        self.keep(result[0])

    @rule(
        batches=st.lists(ACTIONS, min_size=1, max_size=6),
        killed=st.sampled_from([None, None, 0, 1]),
    )
    def steps(self, batches, killed):
        if killed is not None and self.executor == "process":
            self.kill(killed)
        for actions in batches:
            self.step(actions)

    def step(self, actions):
        if self.busy:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.step(actions)
            self.take()
        elif self.over(range(ROWS)):
            with pytest.raises(cartwheel.EpisodeOverError):
                self.envs.step(actions)
            self.session.restart_over_rows()
        else:
            self.check_step(actions, self.envs.step(actions))

    def check_step(self, actions, result):
        self.session.check_step(actions, result)
        self.keep(result[0])

    @rule()
    def call(self):
        if self.busy:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.get_attr("row")
        else:
            self.session.call()

    # Calls in two parts

    @rule(actions=ACTIONS)
    def step_async(self, actions):
        if self.busy:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.step_async(actions)
        elif self.over(range(ROWS)):
            with pytest.raises(cartwheel.EpisodeOverError):
                self.envs.step_async(actions)
        else:
            self.envs.step_async(actions)
            self.pending = ("step", actions)

    @rule(seed=SEEDS)
    def reset_async(self, seed):
        if self.busy and not self.late:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.reset_async(seed=seed)
        else:
            self.dropping_what_is_late(lambda: self.envs.reset_async(seed=seed))
            self.pending, self.late = ("reset", seed), False
            self.sent.clear()

    @rule()
    def call_async(self):
        if self.busy:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.call_async("get_wrapper_attr", "row")
        else:
            self.envs.call_async("get_wrapper_attr", "row")
            self.pending = ("call", None)

    @rule(timeout=TIMEOUTS)
    def wait(self, timeout):
        waits = {
            "reset": self.envs.reset_wait,
            "step": self.envs.step_wait,
            "call": self.envs.call_wait,
        }
        name, argument = self.pending or (None, None)
        for other in sorted(waits.keys() - {name or ""}):
            if other != "reset" or not self.sent:  # `reset_wait` may wait for rows that were sent
                with pytest.raises(NoAsyncCallError):
                    waits[other](timeout=timeout)
        if name is None:
            return

        def check(result):
            self.pending = None
            if name == "step":
                self.check_step(argument, result)
            elif name == "reset":
                self.check_reset(argument, result)
            else:
                assert result == tuple(range(ROWS))

        self.settle(lambda: waits[name](timeout=timeout), check)

    @rule(actions=ACTIONS)
    def step_impatiently(self, actions):
        self.step_async(actions)
        self.wait(0)

    def take(self):
        """Waits for the pending calls."""
        if self.pending:
            self.wait(None)
        elif self.sent:
            self.recv(None)

    # Rows in flight

    @rule(rows=SOME_ROWS, actions=ACTIONS)
    def send(self, rows, actions):
        actions = actions[: len(rows)]
        if self.pending or not self.sent.keys().isdisjoint(rows):
            with pytest.raises(AlreadyPendingCallError):
                self.envs.send(actions, rows)
        elif self.over(rows):
            with pytest.raises(cartwheel.EpisodeOverError):
                self.envs.send(actions, rows)
        else:
            self.envs.send(actions, rows)
            steps = [("step", action) for action in actions]
            self.sent.update(zip(rows, steps, strict=True))

    @rule(rows=SOME_ROWS, seed=SEEDS)
    def send_reset(self, rows, seed):
        options = {"env_index": rows}
        if self.pending and not self.late:
            with pytest.raises(AlreadyPendingCallError):
                self.envs.send_reset(seed=seed, options=options)
        elif not self.pending and self.sent.keys().isdisjoint(rows):
            self.envs.send_reset(seed=seed, options=options)
            self.sent.update({row: ("reset", seed + row) for row in rows})

    @rule(timeout=TIMEOUTS)
    def recv(self, timeout):
        name, actions = self.pending or (None, None)
        sent = self.sent
        if name == "step":  # a pending step is a send of all rows
            sent = {row: ("step", action) for row, action in enumerate(actions)}
        if not sent:
            with pytest.raises(NoAsyncCallError):
                self.envs.recv(timeout)
            return

        def check(result):
            assert result[4]["env_index"].tolist() == list(sent)
            self.session.check_batch(sent, result)
            self.pending = None
            self.keep(result[0])

        self.settle(lambda: self.envs.recv(timeout), check)

    # Deaths, interrupts, dropped arrays and `close`

    @precondition(lambda self: self.executor == "process")
    @rule(worker=st.integers(0, 1))
    def kill(self, worker):
        with contextlib.suppress(ValueError):  # the worker is being replaced
            self.envs.processes[worker].kill()

    @precondition(lambda self: self.executor != "inline")
    @rule(delay=st.sampled_from([0, 1e-4, 5e-4]))
    def interrupt(self, delay):
        """Ctrl-C, which may come during the wait or after it."""

        def raise_if_waiting(*_):
            if self.waiting:
                self.waiting = False
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, raise_if_waiting)
        timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
        try:
            timer.start()
            self.take()
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)

    @rule(at=st.integers(0, 99))
    def drop(self, at):
        if self.kept:
            self.kept.pop(at % len(self.kept))
        gc.collect()

    @precondition(lambda self: self.calls > 40)
    @rule(seed=SEEDS)
    def close(self, seed):
        self.end()
        actions = [0] * ROWS
        for call in (
            self.envs.reset,
            lambda: self.envs.step(actions),
            lambda: self.envs.step_async(actions),
            self.envs.step_wait,
            lambda: self.envs.send(actions),
            self.envs.recv,
            self.envs.send_reset,
            lambda: self.envs.get_attr("row"),
        ):
            with pytest.raises(ClosedEnvironmentError):
                call()
        self.end()
        kept = self.kept
        self.open(self.executor, seed)
        self.kept += kept

    @invariant()
    def kept_observations_never_change(self):
        self.calls = getattr(self, "calls", 0) + 1
        for observations, copy in getattr(self, "kept", []):
            np.testing.assert_array_equal(observations, copy)


# Not shrunk: that would exceed the time limit of a test, which would then hide the failure.
Calls.TestCase.settings = settings(
    max_examples=times(5, with_full=16),
    stateful_step_count=times(50, with_full=80),
    phases=[Phase.generate],
)
# Ctrl-C may come inside `socket.socketpair`, which then leaves a socket to the garbage collector.
TestAnySequenceOfCalls = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)(Calls.TestCase)
