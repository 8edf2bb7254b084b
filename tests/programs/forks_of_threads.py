"""Programs that fork while other threads work."""

import contextlib
import ctypes
import gc
import multiprocessing.util
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import gymnasium as gym
import numpy as np

import cartwheel
from cartwheel.workers.group import WorkerGroup
from cartwheel.workers.inheritance import changed_for_programs
from tests.programs.registry import program, tell


class _Env(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, **_):
        return np.zeros(1, np.float32), {"a": 1, "b": "text", "c": np.ones(2), "d": object}

    def step(self, _):
        return np.zeros(1, np.float32), 0.0, False, False, {"a": 1, "b": None, "c": {"d": (1,)}}

    def variables(self):
        """The faults in the variables of this worker."""
        wrong = [] if os.environ.get("OMP_NUM_THREADS") == "1" else ["OMP_NUM_THREADS is not 1"]
        return wrong + (["PMI_RANK is there"] if "PMI_RANK" in os.environ else [])


def _in_a_child(function):
    """Runs ``function`` in a forked child; returns the status with which it ended."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(150)  # for a child that hangs
        with contextlib.suppress(BaseException):
            function()
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@program
def drop_a_pool_in_a_child():
    """A child drops a pool with threads, whose stacks its C library has given back by then."""
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 256, num_workers=64)
    envs.reset()

    def drop():
        nonlocal envs
        for _ in range(3):  # the end of a thread frees old stacks
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()
        del envs
        gc.collect()

    tell(exitcodes=[_in_a_child(drop) for _ in range(5)])
    envs.close()


#: The name and the bytes of a static that a build without optimization keeps, and that nothing
#: fills: `py_format!` has it for a text without arguments, and this one has an argument.
_UNUSED = ("pyo3::impl_::extract_argument::argument_extraction_error::INTERNED", 16)


@program
def list_statics_of_pyo3():
    """Those of the native module that hold a Python object, and those that hold none yet."""
    library = sys.modules["cartwheel._cartwheel"].__file__
    symbols = subprocess.run(
        ["nm", "--demangle", "--print-size", library], check=True, capture_output=True, text=True
    ).stdout
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    begin = min(int(line.partition("-")[0], 16) for line in maps if line.endswith(library))
    filled, empty = [], []
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for at, size, name in re.findall(
            r"^(\w+) (\w+) \w (.*::(?:INTERNED|TYPE|TYPE_OBJECT))$", symbols, re.MULTILINE
        ):
            if "lazy_type_object" in name:
                continue  # those of our classes: no other thread runs while one is filled
            length = int(size, 16)
            if (name, length) == _UNUSED:
                continue
            memory.seek(begin + int(at, 16))
            words = struct.unpack(f"{length // 8}Q", memory.read(length))
            (filled if all(words) else empty).append(name)
    tell(filled=len(filled), empty=empty)


@program
def fork_during_a_first_use(pause_s):
    """Processes are forked while another thread uses native code for the first time."""
    sys.setswitchinterval(5)  # the thread goes on until it lets others run
    go = threading.Event()

    def use():
        go.wait()
        inline = cartwheel.VectorEnv([_Env], executor="inline", autoreset_mode="same_step")
        inline.reset(seed=1)
        inline.step([0])
        with contextlib.suppress(Exception):
            inline.step([[0], [1]])
        with contextlib.suppress(Exception):
            inline.step_wait()
        cartwheel.make_vec("cartwheel/CartPole-v1", 2).close()

    def before_fork():
        go.set()
        time.sleep(float(pause_s))

    thread = threading.Thread(target=use)
    thread.start()
    os.register_at_fork(before=before_fork)
    with contextlib.closing(
        cartwheel.VectorEnv([_Env], executor="process", context="fork", timeout=20)
    ) as envs:
        envs.reset()
        envs.step([0])
    thread.join()
    tell()


class _OpenFiles(_Env):
    def open_files(self):
        """The open files, once the thread that watches the parent has begun; mapped memory."""
        files = []
        while "anon_inode:[pidfd" not in files:
            files = []
            for file in Path("/proc/self/fd").iterdir():
                with contextlib.suppress(OSError):
                    files.append(str(file.readlink()).rstrip("0123456789[]: "))
            if not _has_pidfds():
                break
        shared = Path("/proc/self/maps").read_text(encoding="utf-8").count("/memfd:")
        return sorted(files), shared


def _has_pidfds():
    """Whether the kernel has them: without, a worker looks for its parent by its id."""
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        return True
    return False


def _open_in_a_worker(**keywords):
    with contextlib.closing(
        cartwheel.VectorEnv([_OpenFiles], executor="process", context="fork", **keywords)
    ) as envs:
        envs.reset()
        return envs.call("open_files")[0]


@program
def list_what_a_worker_has_open():
    """Open descriptors of a worker, forked while no other vector environment is open, or four."""
    alone = _open_in_a_worker()
    others = [
        cartwheel.VectorEnv([_Env] * 2, executor="process", context="fork", num_workers=2),
        cartwheel.VectorEnv([_Env] * 2, executor="thread"),
        cartwheel.VectorEnv([_Env] * 2, executor="inline"),
        cartwheel.make_vec("cartwheel/CartPole-v1", 2),
    ]
    for envs in others:
        envs.reset()
    tell(alone=alone, among_others=_open_in_a_worker())
    for envs in others:
        envs.close()


@program
def fork_while_another_thread_starts_a_worker():
    """Open descriptors of a worker, forked while no other one is started, or another one is."""
    alone, start, describe = _open_in_a_worker(), BaseProcess.start, WorkerGroup.describe
    started, forked, listed = (threading.Event() for _ in range(3))

    def start_slowly(process):
        start(process)
        if threading.current_thread() is first:
            started.set()
            forked.wait(0.5)  # for a fork that should wait itself
        else:
            forked.set()

    def describe_late(group, deadline):
        if threading.current_thread() is first:
            listed.wait()  # a worker keeps the end of a channel that a thread waits for
        return describe(group, deadline)

    BaseProcess.start, WorkerGroup.describe = start_slowly, describe_late
    first = threading.Thread(target=_construct)
    first.start()
    started.wait()
    meanwhile = _open_in_a_worker()
    listed.set()
    first.join()
    tell(alone=alone, meanwhile=meanwhile)


@program
def construct_while_pipes_are_closed():
    """A worker is forked when the pipes to another process are closed, but still known."""
    close, seen = multiprocessing.util.close_fds, []

    def close_and_construct(*descriptors):
        close(*descriptors)
        multiprocessing.util.close_fds = close
        with contextlib.closing(
            cartwheel.VectorEnv([_Env], executor="process", context="fork")
        ) as envs:
            seen.extend(envs.call("variables")[0])

    multiprocessing.util.close_fds = close_and_construct
    cartwheel.VectorEnv([_Env], executor="process", context="fork").close()
    tell(faults=seen)


def _construct():
    envs = cartwheel.VectorEnv([_Env], executor="process", context="fork")
    envs.reset()
    envs.close()


@program
def fork_while_the_limit_is_raised():
    """A child, forked while the limit of descriptors is looked at, makes a vector environment."""
    listdir, exitcodes = os.listdir, []

    def list_and_fork(folder):
        os.listdir = listdir
        exitcodes.append(_in_a_child(_construct))
        return listdir(folder)

    os.listdir = list_and_fork
    _construct()
    tell(exitcodes=exitcodes)


@program
def end_a_child_while_a_worker_starts():
    """A child, forked when a worker has just been started, ends as every Python program does."""
    start, exitcodes = BaseProcess.start, []

    def start_and_fork(process):
        start(process)
        exitcodes.append(_in_a_child(multiprocessing.util._exit_function))

    BaseProcess.start = start_and_fork
    _construct()
    tell(exitcodes=exitcodes)


@program
def fork_while_a_program_starts():
    """Variables of the C library: in a child forked meanwhile, and then in this process."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)
    os.environ["PMI_RANK"] = "0"

    def check():
        assert getenv(b"OMP_NUM_THREADS") is None
        assert getenv(b"PMI_RANK") == b"0"

    with changed_for_programs():
        assert getenv(b"OMP_NUM_THREADS") == b"1"
        assert getenv(b"PMI_RANK") is None
        exitcodes = [_in_a_child(check), _in_a_child(changed_for_programs().__enter__)]
        os.environ["MKL_NUM_THREADS"] = "4"  # as another thread may do
        del os.environ["PMI_RANK"]
    names = (b"OMP_NUM_THREADS", b"MKL_NUM_THREADS", b"PMI_RANK")
    tell(exitcodes=exitcodes, after=[str(getenv(name)) for name in names])


@program
def construct_in_threads(context):
    """Vector environments are made in several threads while another one reads the environment."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)
    os.environ["PMI_RANK"] = "0"
    done, errors, seen = threading.Event(), [], set()

    def read():
        try:
            while not done.is_set():
                seen.add(tuple(os.environ.items()))
        except KeyError as error:
            errors.append(repr(error))

    def construct():
        try:
            for _ in range(2):
                envs = cartwheel.VectorEnv([_Env], executor="process", context=context)
                errors.extend(envs.call("variables")[0])
                envs.close()
        except Exception as error:
            errors.append(repr(error))

    reader = threading.Thread(target=read)
    reader.start()
    threads = [threading.Thread(target=construct) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    tell(errors=errors, environments=len(seen))
