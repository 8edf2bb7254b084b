"""After a panic in a call, a vector environment says that it is broken, and can be closed.

PyO3 turns a panic into a ``PanicException``, and a ``PanicException`` that Python code raises into
a panic of the Rust code that called it. So a test can panic at any place where Rust calls Python,
in the build that users have: while actions are read, in the middle of the core's wait, while a
batch is assembled.
"""

import os
import re
import signal
from contextlib import closing
from functools import cache, partial

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

import cartwheel
from cartwheel import _cartwheel
from tests.support.environments import transcripts
from tests.support.executors import EXECUTORS, PROCESS, THREAD
from tests.support.gates import GatedEnv

ROWS = 4
WHY = "index out of bounds: the len is 3 but the index is 7"


@cache
def panic_exception():
    """The class of our extension module: each module that is built with PyO3 has its own."""
    classes = [each for each in BaseException.__subclasses__() if each.__module__ == "pyo3_runtime"]
    (ours,) = filter(_becomes_a_panic, classes)
    return ours


def _becomes_a_panic(exception):
    """Whether our module turns ``exception`` into a panic: then a new exception arrives."""
    raised = exception(WHY)
    number = type("Number", (), {"__index__": lambda _: _raise(raised)})()
    try:
        _cartwheel.shards(number, 1)
    except exception as arrived:
        return arrived is not raised


def _raise(exception):
    raise exception


def panic(*_, **__):
    """Becomes a panic in the Rust code that called it."""
    raise panic_exception()(WHY)


class PanickingArray:
    """Actions that panic when they are read."""

    __array__ = panic


class VectorEnvWithOwnInfos(cartwheel.VectorEnv):
    """Panics when it adds infos, if ``is_to_panic`` is set."""

    is_to_panic = False

    def _add_info(self, *args):
        return panic() if self.is_to_panic else super()._add_info(*args)


class SignalingEnv(GatedEnv):
    """Sends the caller a signal in a step, and waits at the gate that its action names."""

    def __init__(self, gates, caller):
        super().__init__(gates)
        self.caller = caller

    def step(self, action):
        if action:
            os.kill(self.caller, signal.SIGUSR1)
        return super().step(action)


def make(executor, env_fns, kind=VectorEnvWithOwnInfos):
    return closing(kind(env_fns, executor=executor.name, **executor.keywords))


CALLS = {
    "step": lambda envs: envs.step([0] * ROWS),
    "step_async": lambda envs: envs.step_async([0] * ROWS),
    "step_wait": lambda envs: envs.step_wait(),
    "step of some rows": lambda envs: envs.step([0], env_index=[1]),
    "reset": lambda envs: envs.reset(seed=1),
    "reset_async": lambda envs: envs.reset_async(),
    "reset_wait": lambda envs: envs.reset_wait(),
    "send": lambda envs: envs.send([0] * ROWS),
    "recv": lambda envs: envs.recv(),
    "send_reset": lambda envs: envs.send_reset(),
    "get_attr": lambda envs: envs.get_attr("gravity"),
    "set_attr": lambda envs: envs.set_attr("gravity", 1.0),
    "call_async": lambda envs: envs.call_async("gravity"),
    "call_wait": lambda envs: envs.call_wait(),
    "rollout": lambda envs: envs.rollout(2),
}


def assert_broken(envs):
    """Every call raises the text of the panic; the counts can still be read."""
    for call in CALLS.values():
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            call(envs)
    assert envs.stats().resets.sum() >= ROWS


def assert_can_be_closed(envs, shown):
    """The fixture of every test checks that the workers are gone."""
    copy = shown.copy()
    envs.close()
    np.testing.assert_array_equal(shown, copy)
    with pytest.raises(ClosedEnvironmentError):
        envs.step([0] * ROWS)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_panic_while_actions_are_read(executor):
    with make(executor, transcripts(*[5] * ROWS)) as envs:
        shown, _ = envs.reset(seed=1)
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            envs.step(PanickingArray())
        assert_broken(envs)
        assert_can_be_closed(envs, shown)


def test_a_panic_while_actions_of_native_rows_are_read():
    with closing(cartwheel.NativeVectorEnv("CartPole-v1", ROWS)) as envs:
        shown, _ = envs.reset(seed=1)
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            envs.step(PanickingArray())
        assert_broken(envs)
        assert_can_be_closed(envs, shown)


@pytest.mark.parametrize("executor", [THREAD, PROCESS], ids=str)
def test_a_panic_in_the_middle_of_the_wait(executor, gates):
    before = signal.signal(signal.SIGUSR1, panic)
    try:
        with make(executor, [partial(SignalingEnv, gates, os.getpid())] * ROWS) as envs:
            shown, _ = envs.reset(seed=1)
            with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
                envs.step([1] + [0] * (ROWS - 1))
            assert_broken(envs)  # the step is still going on
            gates.open(1)
            assert_can_be_closed(envs, shown)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_panic_while_a_batch_is_assembled(executor):
    with make(executor, transcripts(*[5] * ROWS)) as envs:
        shown, _ = envs.reset(seed=1)
        envs.is_to_panic = True
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            envs.step([0] * ROWS)
        assert_broken(envs)
        assert_can_be_closed(envs, shown)


def panic_after_the_first_message(callbacks, monkeypatch):
    pack_reset = callbacks.pack_reset

    def messages(*arguments):
        yield pack_reset(*arguments)[0]
        panic()

    monkeypatch.setattr(callbacks, "pack_reset", messages)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_panic_while_messages_are_sent_leaves_no_worker_waiting_for_them(executor, monkeypatch):
    with make(executor, transcripts(*[5] * ROWS)) as envs:
        shown, _ = envs.reset(seed=1)
        panic_after_the_first_message(envs._callbacks, monkeypatch)
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            envs.reset()
        assert_broken(envs)
        assert_can_be_closed(envs, shown)


def test_a_panic_while_a_broken_pool_is_closed_leaves_no_process(monkeypatch):
    with make(PROCESS, transcripts(*[5] * ROWS)) as envs:
        shown, _ = envs.reset(seed=1)
        panic_after_the_first_message(envs._callbacks, monkeypatch)
        monkeypatch.setattr(envs._group.channels[0], "hang_up", panic)
        with pytest.raises(cartwheel.BrokenPoolError, match=re.escape(WHY)):
            envs.reset()
        assert_can_be_closed(envs, shown)


def test_later_calls_name_the_first_panic():
    with closing(cartwheel.NativeVectorEnv("CartPole-v1", ROWS)) as envs:
        envs.reset(seed=1)
        with pytest.raises(cartwheel.BrokenPoolError, match=r"`step`") as first:
            envs.step(PanickingArray())
        with pytest.raises(cartwheel.BrokenPoolError) as second:
            envs.send(PanickingArray())
        assert str(second.value) == str(first.value)
