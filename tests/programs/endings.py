"""Programs that end badly."""

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.vector import base
from tests.programs.registry import program, tell
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.faulty import FaultyEnv, fault
from tests.support.gates import LIMIT_S, Gates
from tests.support.processes import descendants


def build(executor, env_fns, **keywords):
    return cartwheel.VectorEnv(env_fns, executor=executor, num_workers=2, **keywords)


def faulty_rows(num_envs=4):
    return [partial(FaultyEnv, row) for row in range(num_envs)]


def assert_works(envs):
    """Checks that results after a reset equal the oracle's."""
    oracle = SyncVectorEnv(faulty_rows(envs.num_envs))
    for seed in (3, 4):
        assert_identical(envs.reset(seed=seed)[0], oracle.reset(seed=seed)[0])
        for _ in range(10):
            result = envs.step([0] * envs.num_envs)
            assert_identical(result[:4], oracle.step([0] * envs.num_envs)[:4])
    oracle.close()


@program
def wait_to_be_killed(context, state, folder):
    """Reports its workers, then waits in the given state to be killed."""
    if state == "building":
        gates = Gates(folder)
        threading.Thread(target=_tell_when_all_are_building, args=[gates], daemon=True).start()
        build("process", [partial(gates.stand_at, 1), partial(gates.stand_at, 2)], context=context)
    envs = build("process", faulty_rows(), context=context)
    envs.reset()
    if state != "idle":
        envs.step_async([0, fault(state), 0, 0])
        time.sleep(0.2)
    tell(workers=sorted(set(envs.get_attr("pid"))) if state == "idle" else [], all=_descendants())
    time.sleep(3600)


@program
def execute_another_program(context, state):
    """Reports its workers and becomes another program, which holds nothing of this one."""
    envs = build("process", faulty_rows(), context=context)
    envs.reset()
    workers = sorted(set(envs.get_attr("pid")))
    if state != "idle":
        envs.step_async([0, fault(state), 0, 0])
    tell(workers=workers)
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)"])


def _tell_when_all_are_building(gates):
    for number in (1, 2):
        gates.await_arrival(number)
    tell(workers=[], all=_descendants())


def _descendants():
    return sorted(descendants(os.getpid()))


def interrupter(gates, number, target):
    """A thread that sends SIGINT when an environment waits at a gate."""
    send = partial(os.kill, os.getpid()) if target == "process" else partial(os.killpg, 0)

    def interrupt():
        gates.await_arrival(number)
        time.sleep(0.05)  # after that the caller has usually begun to wait
        send(signal.SIGINT)

    return threading.Thread(target=interrupt)


@program
def interrupt_a_long_step(executor, target):
    """Ctrl-C ends the wait for a step that has not finished."""
    with tempfile.TemporaryDirectory() as folder:
        gates = Gates(folder)
        envs = build(executor, gates.env_fns(4))
        envs.reset()
        twin = build(executor, faulty_rows())
        interrupts = 0
        for gate in (1, 2):
            thread, began = interrupter(gates, gate, target), time.monotonic()
            try:
                thread.start()
                envs.step([gate, 0, 0, 0])  # inline, all rows are stepped even if one raises
            except KeyboardInterrupt:
                interrupts += 1
                assert time.monotonic() - began < LIMIT_S, "Ctrl-C was noticed after the step"
                gates.open(gate)
            thread.join()
            observations, _infos = envs.reset()
            assert observations.tolist() == [[0]] * 4
            for t in range(1, 4):
                action = gate if t == 2 else 0
                observations, rewards, *_ = envs.step([action] * 4)
                assert observations.tolist() == [[t]] * 4
                assert rewards.tolist() == [action] * 4
            assert_works(twin)
        envs.close()
        twin.close()
    tell(interrupts=interrupts)


@program
def interrupt_a_receipt(executor, target):
    """Ctrl-C ends ``recv`` while all rows are in flight, and loses no row."""
    with tempfile.TemporaryDirectory() as folder:
        gates = Gates(folder)
        envs = build(executor, gates.env_fns(4), batch_size=2)
        envs.send_reset()
        while envs._pool.in_flight():
            envs.recv()
        interrupts = 0
        for t in (1, 2):
            envs.send([t] * 4, range(4))
            thread = interrupter(gates, t, target)
            try:
                thread.start()
                envs.recv()
            except KeyboardInterrupt:
                interrupts += 1
                gates.open(t)
            thread.join()
            rows = []
            while envs._pool.in_flight():
                observations, *_, infos = envs.recv()
                rows += infos["env_index"].tolist()
                assert observations.tolist() == [[t]] * len(observations)
            assert sorted(rows) == [0, 1, 2, 3]
        envs.close()
    tell(interrupts=interrupts)


@program
def end_with_rows_in_flight(executor, state):
    envs = build(executor, faulty_rows(), batch_size=1)
    envs.send_reset()
    while envs._pool.in_flight():
        envs.recv()
    tell(all=_descendants())
    envs.send([fault(state), 0], [1, 3])


@program
def interrupt_at_random_moments(executor, target, count):
    envs = build(executor, faulty_rows())
    send = partial(os.kill, os.getpid()) if target == "process" else partial(os.killpg, 0)
    moments = random.Random(0)
    interrupts = 0
    for _ in range(int(count)):
        envs.reset(seed=1)
        timer = threading.Timer(moments.uniform(0, 0.02), send, [signal.SIGINT])
        try:
            timer.start()
            while True:
                envs.step([0] * 4)
        except KeyboardInterrupt:
            interrupts += 1
        timer.join()
        assert_works(envs)
    envs.close()
    tell(interrupts=interrupts)


@program
def end_after_an_interrupt(executor):
    """Ctrl-C ends the program in a step that never returns."""
    base.CLOSE_GRACE = 3600.0
    envs = build(executor, faulty_rows())
    envs.reset()
    tell(all=_descendants())
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    envs.step([fault("hang"), 0, 0, 0])


@program
def step_in_a_daemonic_process(executor):
    """Steps in a daemonic process, and reports the executor, or the error."""
    mine, its = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_step_and_answer, args=[its, executor], daemon=True)
    process.start()
    tell(answer=mine.recv())
    process.join()


def _step_and_answer(pipe, executor):
    try:
        with contextlib.closing(build(executor, faulty_rows())) as envs:
            assert_works(envs)
            pipe.send(envs.executor)
    except RuntimeError as error:
        pipe.send(str(error))


@program
def fork_with_live_environments(executor):
    envs = build(executor, faulty_rows())
    envs.reset(seed=1)
    kept = envs.step([0] * 4)[0]
    copy = kept.copy()
    answers = []
    for use in ("step", "close", "collect"):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            answer = "nothing"
            try:
                if use == "step":
                    envs.step([0] * 4)
                elif use == "close":
                    envs.close()
                else:
                    del envs, kept
                    gc.collect()
            except Exception as error:
                answer = type(error).__name__
            os.write(write, answer.encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:  # noqa: PTH123 (a descriptor)
            answers.append(pipe.read().decode())
        os.waitpid(child, 0)
        assert_works(envs)
        assert_identical(kept, copy)
    envs.close()
    tell(answers=answers)


@program
def end_without_close(executor, how):
    envs = build(executor, faulty_rows())
    envs.reset(seed=1)
    envs.step([0] * 4)
    kept = envs.step([0] * 4)[0]
    tell(all=_descendants())
    if how == "end":
        return
    if how == "pending":
        envs.step_async([0] * 4)
    elif how == "collected":
        del envs
        gc.collect()
        deadline = time.monotonic() + 30
        while _descendants() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert kept.shape == (4, 3)
    elif how == "global":
        sys.modules["__main__"].kept_for_ever = (envs, kept)
    elif how == "cycle":
        envs.myself = envs
    elif how == "exception":
        raise ValueError("at top level")
    elif how == "exit":
        sys.exit(7)
    elif how == "exit at once":
        os._exit(7)
    elif how == "exit in a step":
        envs.step([0, fault("system exit"), 0, 0])
    elif how == "thread":
        threading.Thread(target=_step_for_ever, args=[envs], daemon=True).start()
        time.sleep(0.2)


class TouchesAtClose(TranscriptEnv):
    """Touches a file when it is closed."""

    def __init__(self, path):
        super().__init__(5)
        self.path = Path(path)

    def close(self):
        self.path.touch()


def leave_unclosed(executor, daemon, folder):
    """Leaves environments unclosed that touch files when they are closed."""
    env_fns = [partial(TouchesAtClose, f"{folder}/{row}") for row in range(2)]
    sys.modules["__main__"].kept = envs = build(executor, env_fns, daemon=daemon == "daemon")
    envs.reset()


@program
def leave_unclosed_in_a_process(executor, daemon, folder):
    """The same in a process of multiprocessing, which does not call the functions of atexit."""
    arguments = (executor, daemon, folder)
    process = multiprocessing.get_context("fork").Process(target=leave_unclosed, args=arguments)
    process.start()
    process.join()
    sys.exit(process.exitcode)


@program
def end_in_a_forked_child(daemon):
    """A child that is forked ends as programs end; its parent goes on."""
    envs = build("process", faulty_rows(), daemon=daemon == "daemon")
    envs.reset(seed=1)
    child = os.fork()
    if child == 0:
        sys.exit(5)
    _, status = os.waitpid(child, 0)
    assert_works(envs)
    envs.close()
    tell(code=os.waitstatus_to_exitcode(status))


def _step_for_ever(envs):
    with contextlib.suppress(ClosedEnvironmentError):
        while True:
            envs.step([0] * 4)


@program
def close_while_a_thread_hangs():
    """A thread cannot be killed: it is left behind, and the program still ends."""
    envs = build("thread", faulty_rows())
    envs.reset()
    envs.step_async([fault("hang"), 0, 0, 0])
    started = time.monotonic()
    envs.close(timeout=0.2)
    tell(seconds=time.monotonic() - started)


@program
def transcript_of_a_local_class():
    """Environments defined in the program itself, which no worker can import."""

    class Local(TranscriptEnv):
        pass

    for context in ("fork", "forkserver", "spawn"):
        envs = build("process", [lambda: Local(3)] * 3, context=context)
        envs.reset()
        assert envs.step([1, 2, 3])[1].tolist() == [1, 2, 3]
        envs.close()
    tell(done=True)
