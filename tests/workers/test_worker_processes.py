"""The properties of a worker process, seen from inside and from outside."""

import atexit
import contextlib
import gc
import multiprocessing.connection
import multiprocessing.context
import multiprocessing.forkserver
import multiprocessing.process
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.workers import group
from cartwheel.workers.channels import LocalChannel
from cartwheel.workers.exit_codes import read_by_one_thread
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, TranscriptEnv, transcripts
from tests.support.executors import EXECUTORS, FORK_FIRST
from tests.support.processes import residue


def copied_by_a_collection(_env):
    """The memory, in bytes, that a garbage collection no longer shares with the caller."""

    def own():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))

    before = own()
    gc.collect()
    return (own() - before) * 1024


class InsideEnv(TranscriptEnv):
    """Reports on the process that it runs in."""

    def __init__(self):
        super().__init__(length=9)

    def name(self):
        return multiprocessing.current_process().name

    def daemon(self):
        return multiprocessing.current_process().daemon

    def child(self):
        process = multiprocessing.get_context("fork").Process(target=os.getpid)
        process.start()
        process.join()
        return process.exitcode


class MatryoshkaEnv(gym.Env):
    """Contains a vector environment, stepped by ``executor``."""

    action_space = NestedEnv.action_space
    observation_space = gym.vector.utils.batch_space(NestedEnv.observation_space, 2)

    def __init__(self, executor):
        self.envs = cartwheel.VectorEnv([NestedEnv] * 2, executor=executor, num_workers=2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.envs.reset(seed=seed, options=options)[0], {}

    def step(self, action):
        obs, rewards, terminations, _truncations, _infos = self.envs.step([action] * 2)
        return obs, rewards.sum(), bool(terminations.all()), False, {}

    def close(self):
        self.envs.close()


def test_workers_are_named_after_the_class_and_their_index(build_processes):
    envs = build_processes([InsideEnv] * 4)
    assert envs.call("name") == ("Worker<VectorEnv>-0",) * 2 + ("Worker<VectorEnv>-1",) * 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_garbage_collections_of_a_forked_worker_copy_no_objects_of_the_caller():
    objects = [[] for _ in range(200_000)]
    envs = cartwheel.VectorEnv(transcripts(3), executor="process", num_workers=1, context="fork")
    with contextlib.closing(envs):
        (copied, *_) = envs.apply(copied_by_a_collection)
    assert copied < sys.getsizeof([]) * len(objects) / 4


@pytest.mark.parametrize("context", FORK_FIRST)
def test_workers_are_daemons_unless_the_user_wants_children(build_processes, context):
    envs = build_processes([InsideEnv] * 2, context=context)
    assert envs.call("daemon") == (True, True)
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        envs.call("child")
    envs = build_processes([InsideEnv] * 2, context=context, daemon=False)
    assert envs.call("daemon") == (False, False)
    assert envs.call("child") == (0, 0)


@pytest.mark.parametrize("inner", ["inline", "thread", "process"])
def test_vector_environments_may_be_nested(build_processes, inner):
    env_fns = [partial(MatryoshkaEnv, inner)] * 2
    envs = build_processes(env_fns, daemon=inner != "process")
    oracle = SyncVectorEnv([partial(MatryoshkaEnv, "inline")] * 2)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(20):
        assert_identical(envs.step([0, 2]), oracle.step([0, 2]))
    oracle.close()


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_a_vector_environment_cannot_be_pickled(executor):
    envs = executor(transcripts(2, 3))
    with pytest.raises(TypeError, match=r"(?i)pickl"):
        pickle.dumps(envs)
    envs.reset()
    envs.close()


def test_the_random_numbers_of_unseeded_environments_differ(build):
    """Workers are often copies of one process, including its random state."""
    envs = build([NestedEnv] * 4)
    walks = envs.reset()[0]["walk"]
    assert len({walk.tobytes() for walk in walks}) == 4
    seeds = envs.np_random_seed
    assert len(set(seeds)) == 4
    again = build([NestedEnv] * 4)
    assert not np.array_equal(again.reset()[0]["walk"], walks)


def test_the_number_of_descriptors_depends_on_workers_not_on_environments(build_processes):
    before = residue()
    envs = build_processes(transcripts(*[9] * 40))
    envs.reset()
    added = [item for item in residue() - before if item.startswith("descriptor")]
    assert len(added) <= 20, added


def test_a_process_that_cannot_be_killed_is_not_waited_for_without_end(monkeypatch, caplog):
    """As one that waits for a disk. No signal reaches this one."""
    monkeypatch.setattr(group, "KILLED_S", 0.1)
    process = multiprocessing.get_context("fork").Process(target=signal.pause)
    process.start()
    read_by_one_thread(process)
    kill, process.kill = process.kill, lambda: None
    workers = group.WorkerGroup([(0, 2)], [LocalChannel()], [process])
    text = rf"worker 0 \(rows 0 to 1\), pid {process.pid}, was killed and has not ended for 0.1 s"
    try:
        with pytest.raises(cartwheel.WorkerTimeoutError, match=text) as failure:
            workers.reap(0)
        assert (failure.value.env_index, failure.value.workers) == ([0, 1], [0])
        workers.join(grace=0.0)
    finally:
        kill()
        process.join()
        process.close()
    [record] = caplog.records
    assert re.match(text, record.getMessage())


@pytest.mark.parametrize(
    ("context", "module", "name"),
    [("fork", os, "waitpid"), ("forkserver", multiprocessing.forkserver, "read_signed")],
)
def test_threads_that_ask_at_once_learn_how_a_worker_ended(
    build_processes, monkeypatch, context, module, name
):
    """As the start of a process asks in its thread. The first one is about to read for a while."""
    envs = build_processes(transcripts(3), context=context)
    process, read = envs.processes[0], getattr(module, name)
    process.kill()
    multiprocessing.connection.wait([process.sentinel])
    reads, others_read, seen = threading.Event(), threading.Event(), []

    def read_late(*args):
        if threading.current_thread() is first:
            reads.set()
            others_read.wait(0.3)
        return read(*args)

    first = threading.Thread(target=lambda: seen.append(process.exitcode))
    monkeypatch.setattr(module, name, read_late)
    first.start()
    assert reads.wait(30)
    seen.append(process.exitcode)
    others_read.set()
    first.join()
    assert seen == [-signal.SIGKILL] * 2
    assert process.exitcode == -signal.SIGKILL


#: A program that prints what its descriptors refer to.
DESCRIPTORS = """
import os
for name in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink("/proc/self/fd/" + name))
    except OSError:
        pass
"""


class StartingEnv(TranscriptEnv):
    """Starts a program that inherits every descriptor that it can."""

    def __init__(self):
        super().__init__(length=3)

    def inherited(self):
        program = [sys.executable, "-c", DESCRIPTORS]
        done = subprocess.run(program, close_fds=False, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")


@pytest.mark.parametrize("context", FORK_FIRST)
def test_programs_that_environments_start_inherit_none_of_our_descriptors(build_processes, context):
    envs = build_processes([StartingEnv] * 2, context=context, on_worker_death="restart")
    envs.reset()
    envs.rollout(3)
    envs.step([0, 0])
    for links in envs.call("inherited"):
        kinds = ("socket:", "/memfd:", "anon_inode:", "/dev/shm/cartwheel")
        ours = [link for link in links if link.startswith(kinds) or "cartwheel-stderr" in link]
        assert not ours


def test_workers_compute_with_one_thread_unless_the_user_chose(build_processes, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    for context in ("forkserver", "spawn"):
        envs = build_processes([EnvironmentVariablesEnv] * 2, context=context)
        if context == "spawn":
            assert envs.call("variable", "MKL_NUM_THREADS") == ("3", "3")
        assert envs.call("variable", "OMP_NUM_THREADS") == ("1", "1")
        envs.close()
    assert "OMP_NUM_THREADS" not in os.environ


class EnvironmentVariablesEnv(TranscriptEnv):
    def __init__(self):
        super().__init__(length=3)

    def variable(self, name):
        return os.environ.get(name)


class SlowToDie:
    def __del__(self):
        time.sleep(3600)


class LingeringEnv(TranscriptEnv):
    """Leaves an object to the end of the interpreter, and a function to the end of the program."""

    def __init__(self, file):
        super().__init__(length=3)
        globals()["_lingers"] = SlowToDie()
        atexit.register(file.touch)


def test_a_spawned_worker_ends_before_its_interpreter_would(build_processes, caplog, tmp_path):
    envs = build_processes([partial(LingeringEnv, tmp_path / "ended")], context="spawn")
    envs.reset()
    envs.close()
    assert not caplog.records, "it was killed"
    assert (tmp_path / "ended").exists()


class MeasuredProcess(multiprocessing.context.SpawnProcess):
    """Is measured from its start to its end, as by coverage.py, and leaves a file then."""

    def _bootstrap(self, *args, **keywords):
        try:
            return super()._bootstrap(*args, **keywords)
        finally:
            Path(os.environ["MEASURED"], str(os.getpid())).touch()


class MeasuringContext(multiprocessing.context.SpawnContext):
    Process = MeasuredProcess


def test_what_measures_a_spawned_worker_sees_its_end(build_processes, monkeypatch, tmp_path):
    monkeypatch.setenv("MEASURED", str(tmp_path))
    envs = build_processes(transcripts(3, 3), context=MeasuringContext(), num_workers=2)
    pids = [process.pid for process in envs.processes]
    envs.close()
    assert {path.name for path in tmp_path.iterdir()} == set(map(str, pids))


def test_a_signal_handler_may_start_workers_while_one_starts(build_processes, monkeypatch):
    start = multiprocessing.process.BaseProcess.start

    def start_and_signal(process):
        monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)
        signal.raise_signal(signal.SIGUSR1)
        start(process)

    def construct(*_):
        build_processes(transcripts(3), context="fork").close()

    before = signal.signal(signal.SIGUSR1, construct)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start_and_signal)
    assert build_processes(transcripts(3), context="fork").reset()[0].tolist() == [[0]]
    signal.signal(signal.SIGUSR1, before)


def _raise():
    raise ZeroDivisionError("in the copy")


WAYS = {"raises": _raise, "exits": sys.exit, "returns": int}


class ForkingEnv(gym.Env):
    """Forks in its constructor, a step, a reset or a call; the child raises, exits or returns."""

    observation_space, action_space = Discrete(100), Discrete(2)

    def __init__(self, row, where, way):
        self.forks, self.way = where if row == 1 else None, WAYS[way]
        self.status, self.steps = 0, 0
        self.fork("constructor")

    def fork(self, where):
        if self.forks == where:
            pid = os.fork()
            if pid == 0:
                self.way()
                return
            self.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        self.fork("reset")
        return 0, {}

    def count(self):
        self.fork("call")
        return self.steps

    def step(self, _):
        self.steps += 1
        self.fork("step")
        return self.steps, 1.0, False, False, {}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["constructor", "reset", "call", "step"])
def test_a_process_that_an_environment_forks_is_not_a_second_worker(build_workers, where, way):
    envs = build_workers([partial(ForkingEnv, row, where, way) for row in range(3)], timeout=60)
    for _ in range(2):
        assert envs.reset()[0].tolist() == [0, 0, 0]
        for step in range(1, 4):
            assert envs.step([0, 0, 0])[0].tolist() == [step] * 3
            assert envs.call("count") == (step, step, step)
    assert envs.get_attr("status") == (0, 1, 0)
