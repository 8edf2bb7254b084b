"""Calls from several threads, or from inside an environment, are exceptions, never deadlocks."""

import contextlib
import multiprocessing
import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import SleepingEnv, transcripts
from tests.support.executors import INLINE, THREAD
from tests.support.gates import GatedEnv
from tests.support.oracle import assert_same_reset, assert_same_steps, with_oracle
from tests.support.processes import native_threads
from tests.support.repetitions import times
from tests.support.threads import in_thread

#: The threads of this process.
TASKS = Path("/proc/self/task")
#: Seconds for which several threads call at once.
HAMMERING_S = times(0.1, with_full=0.5)


def test_a_second_thread_is_refused_while_the_first_one_steps(build, gates):
    envs = build(gates.env_fns(2))
    envs.reset()
    wait = in_thread(envs.step, [1, 0])
    gates.await_arrival(1)
    for call in (
        lambda: envs.step([0, 0]),
        lambda: envs.step_async([0, 0]),
        lambda: envs.call("t"),
        lambda: envs.set_attr("t", 3),
        envs.render,
    ):
        with pytest.raises(AlreadyPendingCallError, match="pending call to `step`") as refusal:
            call()
        assert refusal.value.name == "step"
    gates.open(1)
    assert wait()[0].tolist() == [[1], [1]]
    assert envs.step([0, 0])[0].tolist() == [[2], [2]]


def test_a_reset_is_refused_while_another_thread_steps(build, gates):
    envs = build(gates.env_fns(2))
    envs.reset()
    wait = in_thread(envs.step, [1, 0])
    gates.await_arrival(1)
    with pytest.raises(AlreadyPendingCallError):
        envs.reset()
    gates.open(1)
    assert wait()[0].tolist() == [[1], [1]]


def test_each_of_many_threads_at_once_steps_or_is_refused(build_any):
    envs = build_any([Case("Null-v0")] * 2)  # its observation counts its steps
    envs.reset()
    barrier = threading.Barrier(4)
    counts = {"stepped": 0, "refused": 0}
    lock = threading.Lock()

    def hammer():
        barrier.wait()
        deadline = time.monotonic() + HAMMERING_S
        while time.monotonic() < deadline:
            try:
                envs.step([0, 0])
                key = "stepped"
            except AlreadyPendingCallError:
                key = "refused"
            with lock:
                counts[key] += 1

    for wait in [in_thread(hammer) for _ in range(4)]:
        wait()
    assert counts["stepped"] > 0
    observations, *_ = envs.step([0, 0])
    assert observations.tolist() == [[(counts["stepped"] + 1) % 256]] * 2


def test_every_method_at_once_ends_in_a_defined_state(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3)
    deadline = time.monotonic() + HAMMERING_S
    calls = [
        lambda: envs.step([0, 1, 1]),
        lambda: envs.reset(seed=1),
        lambda: envs.get_attr("gravity"),
        lambda: (envs.step_async([0, 1, 1]), envs.step_wait(timeout=30)),
        lambda: (envs.call_async("gravity"), envs.call_wait(timeout=30)),
    ]

    def hammer(call):
        while time.monotonic() < deadline:
            with contextlib.suppress(AlreadyPendingCallError, NoAsyncCallError):
                call()

    for wait in [in_thread(hammer, call) for call in calls]:
        wait()
    with contextlib.suppress(NoAsyncCallError):
        envs.step_wait(timeout=30)
    with contextlib.suppress(NoAsyncCallError):
        envs.call_wait(timeout=30)
    assert_same_reset(envs, oracle, seed=4)
    assert_same_steps(envs, oracle, 10)


def test_another_thread_may_wait_for_a_step(build_any):
    envs, oracle = with_oracle(build_any, POLE, 2)
    for _ in range(5):
        envs.step_async([0, 1])
        assert_identical(in_thread(envs.step_wait)(), oracle.step([0, 1]))


def test_two_threads_may_take_turns(build_any):
    envs, oracle = with_oracle(build_any, POLE, 2)
    lock, results = threading.Lock(), []

    def step():
        for _ in range(50):
            with lock:
                results.append(envs.step([0, 1]))

    for wait in [in_thread(step) for _ in range(2)]:
        wait()
    assert_identical(results, [oracle.step([0, 1]) for _ in range(100)])


def test_another_thread_may_do_all_the_work(build_any):
    envs = in_thread(build_any, [POLE] * 2)()
    oracle = SyncVectorEnv([POLE] * 2)
    in_thread(partial(assert_same_reset, envs, oracle, seed=1))()
    in_thread(assert_same_steps, envs, oracle, 10)()
    in_thread(envs.close)()


def test_closing_from_another_thread_ends_a_step(build_workers):
    envs = build_workers([SleepingEnv] * 2)
    envs.reset()
    wait = in_thread(envs.step, [0.6, 0.0])
    time.sleep(0.2)
    envs.close()
    with contextlib.suppress(ClosedEnvironmentError):  # or the step ended first
        wait()
    assert envs.closed
    with pytest.raises(ClosedEnvironmentError):
        envs.step([0.0, 0.0])


class PickledAtAGateError(Exception):
    """Waits at gate 1 when it is about to leave its process."""

    def __init__(self, gates):
        super().__init__("at a gate")
        self.gates = gates

    def __reduce__(self):
        self.gates.stand_at(1)
        return super().__reduce__()


class RaisingAtAGateEnv(GatedEnv):
    def step(self, _):
        raise PickledAtAGateError(self.gates)


def test_closing_ends_a_step_that_waits_for_an_exception(build_processes, gates):
    envs = build_processes([partial(RaisingAtAGateEnv, gates)] * 2)
    envs.reset()
    wait = in_thread(envs.step, [0, 0])
    gates.await_arrival(1)
    envs.close(timeout=0.1)
    with pytest.raises(ClosedEnvironmentError):
        wait()


def test_a_step_that_outlasts_close_closes_the_environments_when_it_ends():
    inside, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    class HeavyEnv(gym.Wrapper):
        def step(self, action):
            inside.set()
            go_on.wait(30)
            return super().step(action)

        def close(self):
            closed.set()

    envs = INLINE([lambda: HeavyEnv(transcripts(9)[0]())])
    envs.reset()
    wait = in_thread(envs.step, [1])
    assert inside.wait(30)
    envs.close(timeout=0.1)
    assert not closed.is_set(), "the environment is still stepping"
    go_on.set()
    assert wait()[1].tolist() == [1], "the step returns its result"
    assert closed.is_set()
    with pytest.raises(ClosedEnvironmentError):
        envs.step([1])


def test_several_vector_environments_run_side_by_side(build_any):
    def run(case, seed):
        envs, oracle = with_oracle(build_any, case, 2, seed=seed)
        assert_same_steps(envs, oracle, 30, seed=seed)

    jobs = [(POLE, 1), (Case("Blackjack-v1"), 2), (POLE, 3)]
    for wait in [in_thread(run, *job) for job in jobs]:
        wait()


class MeddlingEnv(gym.Wrapper):
    """Calls the vector environment that it is part of."""

    meddle = None

    def step(self, action):
        if self.meddle is not None:
            type(self).meddle()
        return super().step(action)


@pytest.mark.parametrize("executor", [INLINE, THREAD], ids=str)
def test_an_environment_that_calls_its_own_vector_environment_is_refused(executor):
    class Meddling(MeddlingEnv):
        pass

    def build_env(length):
        return Meddling(transcripts(length)[0]())

    envs = executor([partial(build_env, 9)] * 2)
    for call in (
        lambda: envs.step([0, 0]),
        envs.reset,
        lambda: envs.get_attr("t"),
        lambda: envs.step_async([0, 0]),
    ):
        envs.reset()
        Meddling.meddle = staticmethod(call)
        with pytest.raises(AlreadyPendingCallError) as refusal:
            envs.step([1, 1])
        assert_names_row(refusal.value, 0)
        Meddling.meddle = None
    assert envs.reset()[0].tolist() == [[0], [0]]
    assert envs.step([1, 2])[1].tolist() == [1, 2]
    envs.close()


def test_a_signal_handler_that_calls_is_refused(build_workers, gates):
    """The main thread waits for a step; a handler runs in the middle of the wait."""
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    refusals = []

    def handler(*_):
        if not (gates.is_reached(1) and gates.is_reached(2)):
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # not every worker has begun its step
            return
        for call in (lambda: envs.step([0, 0]), envs.reset, lambda: envs.get_attr("t")):
            with pytest.raises(AlreadyPendingCallError) as refusal:
                call()
            refusals.append(refusal.value.name)
        gates.open(1, 2)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        observations, *_ = envs.step([1, 2])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert observations.tolist() == [[1], [1]]
    assert refusals == ["step"] * 3


@pytest.mark.parametrize("closing", [False, True])
def test_sending_receiving_and_closing_at_once_end_in_a_defined_state(build_any, closing):
    envs, oracle = with_oracle(build_any, POLE, 4)
    deadline = time.monotonic() + HAMMERING_S
    calls = [
        lambda: envs.send([1, 1], [0, 3]),
        lambda: envs.send([1], [2]),
        lambda: envs.recv(timeout=1e-3),
        lambda: envs.recv(timeout=30),
        lambda: envs.send_reset(options={"env_index": [1]}),
        lambda: envs.step([1] * 4),
    ]

    def hammer(call):
        refusals = (AlreadyPendingCallError, NoAsyncCallError, ClosedEnvironmentError)
        while time.monotonic() < deadline:
            with contextlib.suppress(*refusals, multiprocessing.TimeoutError):
                call()

    waits = [in_thread(hammer, call) for call in calls]
    if closing:
        time.sleep(HAMMERING_S / 4)
        envs.close()
    for wait in waits:
        wait()
    if closing:
        with pytest.raises(ClosedEnvironmentError):
            envs.recv()
        return
    with contextlib.suppress(NoAsyncCallError):  # when everything has been received
        while True:
            envs.recv(timeout=30)
    assert_same_reset(envs, oracle, seed=2)
    assert_same_steps(envs, oracle, 10)


@pytest.mark.parametrize("sent", [False, True])
def test_the_actions_that_were_checked_are_those_that_are_stepped(sent):
    """Another thread overwrites the caller's array: a step is refused, or takes valid actions."""
    num_envs = 50_000
    envs = cartwheel.NativeVectorEnv("cartwheel/CliffWalking-v1", num_envs, num_workers=1)
    envs.reset(seed=0)
    rows = np.arange(num_envs)[::-1] if sent else None  # in reverse order, row by row
    actions, good = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
    bad, done = np.full(num_envs, 7), threading.Event()

    def scribble():
        while not done.is_set():
            np.copyto(actions, bad)  # without the GIL
            np.copyto(actions, good)

    scribbler = threading.Thread(target=scribble)
    scribbler.start()

    def outcome():
        try:
            envs.step(actions, env_index=rows) if sent else envs.step(actions)
        except ValueError as error:
            return str(error)[: len("action 7")]
        return "stepped"

    enough = times(5, with_full=40)
    outcomes, give_up = Counter(), time.monotonic() + 40
    try:
        while min(outcomes["stepped"], outcomes["action 7"]) < enough:
            if time.monotonic() > give_up:
                break
            outcomes[outcome()] += 1
    finally:
        done.set()
        scribbler.join()
        envs.close()
    assert outcomes.keys() == {"stepped", "action 7"}


@pytest.mark.skipif(not TASKS.exists(), reason="only Linux shows names here")
def test_the_system_shows_the_names_of_our_threads():
    before = native_threads()
    envs = cartwheel.VectorEnv([POLE] * 3, executor="thread", num_workers=3)
    natives = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=2)
    natives.reset(seed=1)
    started = native_threads() - before
    ours = {(TASKS / str(task) / "comm").read_text().strip() for task in started}
    assert ours == {"cartwheel-w0", "cartwheel-w1", "cartwheel-w2", "cartwheel-1"}
    envs.close()
    natives.close()
