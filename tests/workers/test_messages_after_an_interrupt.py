"""Ctrl-C while a message is sent or received corrupts no later message.

This file is above 500 lines because the same functions interrupt whatever sends or receives.
"""

import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel._cartwheel import LARGEST_MESSAGE, Descriptor
from cartwheel.vector.sent_rows import SentRows
from cartwheel.workers import channels
from cartwheel.workers.channels import (
    LocalChannel,
    LocalWorkerChannel,
    ProcessChannel,
    ProcessWorkerChannel,
)
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.interrupts import ANY_MOMENT, CALLERS, interrupted_at
from tests.support.processes import left_behind, residue
from tests.support.repetitions import times

pytestmark = ANY_MOMENT

#: Lengths of messages, in characters: one needs a single read, the other many.
SIZES = (10, 3_000_000)


class TalkativeEnv(TranscriptEnv):
    """Answers with as many characters as the caller asks for."""

    def __init__(self):
        super().__init__(length=1000)

    def talk(self, letter, size):
        return letter * size

    def step(self, action):
        if action == 2:
            raise ValueError("x" * SIZES[1])
        return super().step(action)


def interrupted(run):
    """The result of ``run``; ``None`` if a ``KeyboardInterrupt`` at a random moment came first."""
    armed, came = True, False

    def raise_once(*_):
        nonlocal armed, came
        came = True
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, raise_once)
    timer = threading.Timer(random.uniform(0, 4e-3), os.kill, (os.getpid(), signal.SIGINT))
    try:
        try:
            timer.start()
            return run()
        finally:
            armed = False
    except KeyboardInterrupt:
        return None
    finally:
        timer.join()
        while not came:  # the signal was sent, and must not reach the previous handler
            time.sleep(0)
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def ends():
    mine, theirs = socket.socketpair()
    ours = ProcessChannel(Descriptor(mine.detach()), os.getpid())
    both = [ours, ProcessWorkerChannel(Descriptor(theirs.detach()))]
    yield both
    ours.close()
    both.pop().close()


def received(end, number=0):
    return end.unpack(end.receive(number))


def local_ends():
    ours = LocalChannel()
    return ours, LocalWorkerChannel(ours)


def test_an_interrupted_receive_never_loses_half_a_message(ends):
    ours, worker = ends
    last = times(20, with_full=60)
    for number in range(1, last):
        expected = chr(96 + number % 26) * SIZES[number % 2]
        worker.post(worker.pack(expected), number)
        got = interrupted(partial(ours.receive, number))
        assert got in (None, worker.pack(expected))
    worker.post(worker.pack("last"), last)
    assert received(ours, last) == "last"


def test_an_interrupted_send_never_sends_half_a_message(ends):
    ours, worker = ends
    messages = [str(number) * SIZES[number % 2] for number in range(40)]
    received = []
    reader = threading.Thread(target=lambda: received.extend(iter(worker.receive, "last")))
    reader.start()
    for content in messages:
        interrupted(partial(ours.post, ours.pack(content)))
        interrupted(ours.flush)  # the next one sends the rest first
    ours.post(ours.pack("last"))
    assert ours.flush()
    reader.join()
    unseen = iter(messages)
    assert all(content in unseen for content in received), "not whole, or not in order"
    assert len(received) > 20  # the others were interrupted before they began


def test_a_message_that_is_not_read_is_kept(ends):
    ours, worker = ends
    message = ours.pack("x" * SIZES[1])
    ours.post(message)
    assert not ours.flush(timeout=0.01)
    reader = threading.Thread(target=ours.flush)
    reader.start()
    assert worker.receive() == "x" * SIZES[1]
    reader.join()
    assert ours.flush(timeout=0)


def test_a_message_larger_than_1_gib_is_refused_and_nothing_is_sent(ends, monkeypatch):
    ours, worker = ends
    assert LARGEST_MESSAGE == 1 << 30
    with pytest.raises(ValueError, match="a message has 1073741825 bytes"):
        ours.post(bytes(LARGEST_MESSAGE + 1))
    monkeypatch.setattr(channels, "LARGEST_MESSAGE", 1000)
    for end in ends:
        with pytest.raises(ValueError, match=r"may have 1000 bytes \(1 GiB\), this one has 10\d\d"):
            end.pack("x" * 1000)
    ours.post(ours.pack("small"))
    assert worker.receive() == "small"


def test_a_message_longer_than_it_says_it_may_be_is_not_read():
    mine, theirs = socket.socketpair()
    ours = ProcessChannel(Descriptor(mine.detach()), os.getpid())
    theirs.sendall(np.array([1, LARGEST_MESSAGE + 1, 0], np.uint64).tobytes())
    with pytest.raises(ValueError, match="a message has 1073741825 bytes"):
        ours.receive()
    theirs.close()


def test_descriptors_arrive_with_their_messages_and_in_their_order(ends):
    ours, worker = ends
    pipes = [os.pipe() for _ in range(3)]
    sent = [Descriptor(write) for _, write in pipes]
    ours.post((ours.pack("two"), sent[:2]))
    ours.post((ours.pack("one"), sent[2:]))
    assert [worker.receive(), worker.receive()] == ["two", "one"]
    for number, (read, _) in enumerate(pipes):
        received = worker.take_descriptor()
        os.write(received.fileno(), bytes([number]))
        assert os.read(read, 2) == bytes([number])
        os.close(read)
    with pytest.raises(EOFError):
        worker.take_descriptor()


def test_a_receive_ends_with_its_time_and_with_the_other_end(ends):
    ours, worker = ends
    with pytest.raises(multiprocessing.TimeoutError):
        ours.receive(timeout=0.01)
    worker.post(worker.pack("last"))
    worker.close()
    del worker
    assert received(ours) == "last"


@pytest.mark.parametrize("kind", ["process", "local"])
def test_messages_that_were_not_received_are_skipped(ends, kind):
    ours, worker = ends if kind == "process" else local_ends()
    for number in range(1, 6):
        worker.post(worker.pack(number), number)
    assert [received(ours, number) for number in (1, 3, 5)] == [1, 3, 5]


def test_what_a_replaced_process_sent_is_received_in_any_order():
    channels = []
    for letter in "ab":
        mine, theirs = socket.socketpair()
        channels.append(ProcessChannel(Descriptor(mine.detach()), os.getpid()))
        worker = ProcessWorkerChannel(Descriptor(theirs.detach()))
        before = 10 * len(channels) - 10
        for number in (1, 2):
            worker.post(worker.pack(f"{letter}{number}"), before + number)
        worker.close()
    earlier, ours = channels
    ours.follow(earlier, 10)
    assert [received(ours, number) for number in (2, 11, 1, 12)] == ["a2", "b1", "a1", "b2"]
    with pytest.raises(EOFError):
        ours.receive(3)
    assert ours.replaced == 10
    ours.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_call_after_interrupted_calls_has_its_own_answers(build_workers, size):
    envs = build_workers([TalkativeEnv] * 3, num_workers=2)
    envs.reset()
    for turn in range(times(4, with_full=12)):
        envs.call_async("talk", "a", size)
        interrupted(envs.call_wait)
        if envs._pool.pending():  # interrupted while the workers were busy: nothing is lost
            assert envs.call_wait() == ("a" * size,) * 3
        assert envs.call("talk", chr(98 + turn), 3) == (chr(98 + turn) * 3,) * 3


def test_a_step_after_an_interrupted_exception_has_its_own_result(build_workers):
    envs = build_workers([TalkativeEnv] * 3, num_workers=2)
    for turn in range(times(4, with_full=12)):
        assert envs.reset(seed=turn)[0].tolist() == [[0]] * 3
        envs.step_async(np.array([2, 2, 2]))
        with contextlib.suppress(ValueError):
            interrupted(envs.step_wait)
        if envs._pool.pending():
            with pytest.raises(ValueError, match="xxx"):
                envs.step_wait()
        envs.reset()
        assert envs.step(np.array([0, 1, 0]))[0].tolist() == [[1]] * 3


class InterruptingEnv(TranscriptEnv):
    """Of the action 2, Ctrl-C comes as the step ends."""

    def __init__(self, caller):
        super().__init__(length=1000)
        self.caller = caller

    def step(self, action):
        if action == 2:
            os.kill(self.caller, signal.SIGINT)
        return super().step(action)


def test_results_that_come_with_ctrl_c_are_still_to_be_received(build_workers):
    envs = build_workers([partial(InterruptingEnv, os.getpid())] * 2, num_workers=2)
    envs.reset()
    for steps in (1, 3, 5):
        with pytest.raises(KeyboardInterrupt):
            envs.step(np.array([2, 0]))
        assert envs.step_wait()[0].tolist() == [[steps]] * 2
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come as the send ends
            envs.send(np.array([0, 2]))
            envs.recv(timeout=30)
        assert envs.recv(timeout=30)[0].tolist() == [[steps + 1]] * 2


def test_ctrl_c_closes_without_a_warning_of_the_call_that_it_left_pending(build_workers):
    envs = build_workers([partial(InterruptingEnv, os.getpid())] * 2, num_workers=1)
    envs.reset()
    with pytest.raises(KeyboardInterrupt), envs:  # a warning would be an error
        envs.step(np.array([2, 0]))
    with pytest.raises(ClosedEnvironmentError):
        envs.step_wait()


@pytest.mark.parametrize("num_workers", [1, 2])
def test_ctrl_c_in_a_native_step_keeps_its_results(num_workers):
    """With one worker the calling thread steps all rows, and looks at signals afterwards."""
    repeated = {"action_repeat": 20_000, "max_episode_steps": 10**9}
    build = partial(cartwheel.NativeVectorEnv, "Pendulum-v1", 2, num_workers=num_workers)
    envs, expected = build(**repeated), build(**repeated)
    actions = np.zeros((2, 1), np.float32)
    expected.reset(seed=1)
    result = expected.step(actions)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(3):  # on a busy machine it may come before the step begins
            envs.reset(seed=1)
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - nowhere else, however busy it is
                signal.setitimer(signal.ITIMER_REAL, 2e-3)
                envs.step(actions)
            if envs._pool.pending():
                break
    finally:
        signal.signal(signal.SIGALRM, before)
    assert_identical(envs.step_wait(), result)
    envs.close()
    expected.close()


class ToldEnv(gym.Env):
    """Each step ends an episode, at gate 1 if the action says so; remembers its last seed."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Text(SIZES[1])
    seed = None

    def __init__(self, gates):
        self.gates = gates

    def reset(self, *, seed=None, **_):
        self.seed = seed
        return 0, {}

    def step(self, action):
        if action == "wait":
            self.gates.stand_at(1)
        return 1, 0.0, True, False, {}


def test_details_of_the_next_reset_follow_an_interrupted_send(build_processes, monkeypatch, gates):
    """A worker that was told that there are some would wait for them forever."""
    envs = build_processes([partial(ToldEnv, gates)] * 2, num_workers=1, autoreset_mode="SameStep")
    envs.reset()
    envs.send(["wait"], [0])
    gates.await_arrival(1)  # the worker does not read
    envs.next_reset(seed=[7], env_index=[1])
    pack, code = envs._callbacks.pack_sent_actions, SentRows.send.__code__

    def interrupt():
        while sys._current_frames()[threading.main_thread().ident].f_code is not code:
            time.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)

    def pack_and_interrupt(*arguments):
        interrupting.start()
        return pack(*arguments)

    interrupting = threading.Thread(target=interrupt)
    monkeypatch.setattr(envs._callbacks, "pack_sent_actions", pack_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.send(["x" * SIZES[1]], [1])
    interrupting.join()
    gates.open(1)
    while envs.in_flight:
        envs.recv(timeout=30)
    assert envs.get_attr("seed") == (None, 7)


CART_POLES = [partial(gym.make, "CartPole-v1")] * 3


@pytest.fixture
def oracle(closes):
    return closes(SyncVectorEnv(CART_POLES))


def assert_in_step(envs, oracle, seed):
    assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed))
    actions = np.array([0, 1, 1])
    assert_identical(envs.step(actions), oracle.step(actions))


def at_every_line(run, check, files=CALLERS):
    """Interrupts ``run(line)`` before each line in turn; calls ``check(line)`` after each."""
    for line in itertools.count(1):
        came = interrupted_at(
            line, lambda line=line: run(line), *([] if files is None else [files])
        )
        check(line)
        if not came:
            return line


def files_of(build):
    """The files that the calling thread runs; inline, it also is the worker."""
    is_inline = build.executor == "inline"
    of_worker = ("workers/serving/worker", "workers/serving/control_calls") if is_inline else ()
    return (*CALLERS, "workers/channels", *of_worker)


@pytest.mark.parametrize("begin", ["reset", "send_reset", "reset some"])
def test_a_reset_after_interrupted_resets_has_its_own_seeds(build, oracle, begin):
    envs = build(CART_POLES)

    def run(line):
        if begin == "reset some":
            envs.reset(seed=line, options={"env_index": [2, 0]})
        else:
            getattr(envs, begin)(seed=line)

    def check(line):
        if begin == "send_reset" and envs.in_flight:  # not interrupted before everything was sent
            envs.recv()
        assert_in_step(envs, oracle, 1000 + line)

    files = files_of(build) if begin == "reset" else CALLERS
    assert at_every_line(run, check, files) > 20


def test_rows_that_are_sent_after_interrupted_ones_have_their_own_messages():
    """Inline, Ctrl-C may come while the worker takes a message, which has parts for other rows."""
    envs = cartwheel.VectorEnv([partial(ToldEnv, None)] * 3, executor="inline")
    envs.reset()
    some = {"env_index": [1, 2]}

    def run(line):
        envs.send_reset(seed=line, options=some)
        envs.recv()

    def check(line):
        if envs.in_flight:
            envs.recv()
        seed = 1000 * line
        envs.send_reset(seed=seed, options=some)
        envs.recv()
        assert envs.get_attr("seed") == (None, seed + 1, seed + 2)

    files = (*CALLERS, "workers/channels", "workers/serving/worker")
    assert at_every_line(run, check, files) > 40
    envs.close()


def test_a_native_reset_after_interrupted_resets_has_its_own_seeds(oracle):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=2)
    run = partial(lambda line: envs.reset(seed=line))
    assert at_every_line(run, lambda line: assert_in_step(envs, oracle, 1000 + line)) > 20
    envs.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_call_after_interrupted_requests_has_its_own_answers(build, size):
    envs = build([TalkativeEnv] * 3)
    envs.reset()

    def check(line):
        if envs._pool.pending():
            assert envs.call_wait() == ("a" * size,) * 3
        letter = chr(98 + line % 20)
        assert envs.call("talk", letter, 3) == (letter * 3,) * 3

    assert at_every_line(lambda _: envs.call("talk", "a" * size, 1), check) > 10


class LargeInfoEnv(TranscriptEnv):
    """Has an info that does not fit into the memory for infos."""

    def step(self, action):
        *results, _ = super().step(action)
        return *results, {"large": "x" * SIZES[1]}


@pytest.mark.parametrize("call", ["step", "get_attr"])
def test_ctrl_c_is_raised_wherever_it_comes_in_the_callers_own_worker(call):
    envs = cartwheel.VectorEnv([partial(LargeInfoEnv, 1000)] * 2, executor="inline")
    argument = {"step": [0, 0], "get_attr": "length"}[call]
    returned = set()

    def run(line):
        getattr(envs, call)(argument)
        returned.add(line)

    def check(line):
        came.append(line not in returned)
        envs.reset()

    envs.reset()
    came = []
    files = ("workers/channels", "workers/serving/control_calls", "workers/serving/worker")
    at_every_line(run, check, files)
    assert came == [True] * (len(came) - 1) + [False]
    envs.close()


def test_a_rollout_after_interrupted_ones_is_complete(build_workers, oracle):
    envs = build_workers(CART_POLES, num_workers=2)
    envs.reset(seed=0)
    actions = np.array([1, 0, 1])
    files = ("vector/base", "workers/channels", "workers/launch", "workers/callbacks")

    def check(line):
        assert_in_step(envs, oracle, line)
        slab = envs.rollout(line)  # as long as the interrupted one
        expected = oracle.step(actions)
        assert_identical(envs.step(actions), expected)
        assert_identical(slab.observations[1], expected[0])

    assert at_every_line(envs.rollout, check, files) > 30


@pytest.mark.slow
def test_closing_after_an_interrupt_leaves_no_thread(build):
    def begin(_):
        envs.send_reset(seed=1)

    for line in itertools.count(1):
        envs = build(CART_POLES)
        came = interrupted_at(line, partial(begin, line))
        envs.close()
        if not came:
            break


class ClosedEnv(TranscriptEnv):
    """Leaves a file when it is closed; with ``interrupts``, Ctrl-C comes while it is."""

    def __init__(self, file, interrupts=False):
        super().__init__(length=3)
        self.file, self.interrupts = file, interrupts

    def close(self):
        self.file.touch()
        if self.interrupts:
            raise KeyboardInterrupt


def test_a_close_after_an_interrupted_one_leaves_nothing(build, tmp_path):
    files = ("vector/base", "vector/vector_env", "workers/group", "workers/exit_codes")
    for line in itertools.count(1):
        before, paths = residue(), [tmp_path / f"{line} {row}" for row in range(3)]
        envs = build([partial(ClosedEnv, path) for path in paths])
        came = interrupted_at(line, envs.close, files)
        envs.close()
        assert all(path.exists() for path in paths), line
        assert not left_behind(before), line
        if not came:
            break
    assert line > 10


def test_ctrl_c_in_an_environment_that_closes_is_raised_and_the_others_close_next(tmp_path):
    paths = [tmp_path / str(row) for row in range(3)]
    envs = cartwheel.VectorEnv(
        [partial(ClosedEnv, path, row == 1) for row, path in enumerate(paths)], executor="inline"
    )
    with pytest.raises(KeyboardInterrupt):
        envs.close()
    assert [path.exists() for path in paths] == [True, True, False]
    envs.close()
    assert paths[2].exists()
