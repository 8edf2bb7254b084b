"""Programs to which the kernel refuses system calls that the core would like to use."""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import threading
from pathlib import Path

import numpy as np

import cartwheel
from tests.programs.registry import program, tell
from tests.programs.scarcity import attempt
from tests.support.environments import TranscriptEnv
from tests.support.seccomp import NUMBERS, SHARED_WAKE, forbid

NUM_ENVS = 4
#: Arguments with which each system call succeeds: no thread is woken, and a name is empty.
WORD = ctypes.create_string_buffer(8)
ARGUMENTS = {
    "futex": [ctypes.addressof(WORD), SHARED_WAKE, 1],
    "memfd_create": [ctypes.addressof(WORD), 0],
    "pidfd_open": [os.getpid(), 0],
}


class ListeningEnv(TranscriptEnv):
    """Tells its process id."""

    def __init__(self):
        super().__init__(length=5)

    def pid(self):
        return os.getpid()


def build(executor, **keywords):
    return cartwheel.VectorEnv([ListeningEnv] * NUM_ENVS, executor=executor, **keywords)


def is_refused(name):
    """Whether this system call is refused to Python, too, so that the filter works."""
    library = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_long(NUMBERS[platform.machine()][name])
    arguments = [ctypes.c_long(value) for value in ARGUMENTS[name]]
    return library.syscall(number, *arguments) == -1


@program
def step_without_system_calls(names, number, context):
    """Reports what workers return, whether a dead one is noticed, and what is left behind."""
    names = names.split(",")
    before = list(map(is_refused, names))
    forbid(names, getattr(errno, number))
    facts = {"before": before, "refused": list(map(is_refused, names))}
    inline, envs = build("inline"), build("process", context=context, num_workers=2)
    with contextlib.closing(inline), contextlib.closing(envs):
        results = [each.reset(seed=1)[0] for each in (inline, envs)]
        facts["equal"] = [bool(np.array_equal(*results))]
        kept = []
        for step in range(20):
            actions = np.full(NUM_ENVS, step % 2)
            ours, theirs = (each.step(actions) for each in (envs, inline))
            facts["equal"].append(all(map(np.array_equal, ours[:4], theirs[:4])))
            kept.append(ours[0])
        victim = envs.call("pid")[0]
        os.kill(victim, signal.SIGKILL)
        facts["death"] = attempt(lambda: envs.step(np.zeros(NUM_ENVS, int)))["error"]
    tell(**facts)


@program
def leave_workers_without_pidfds(context):
    """Ends like a crash, and leaves the ids of two workers behind."""
    forbid(["pidfd_open"], errno.ENOSYS)
    envs = build("process", context=context, num_workers=2)
    envs.reset()
    tell(workers=sorted(set(envs.call("pid"))))
    os.kill(os.getpid(), signal.SIGKILL)


@program
def construct_without_shared_memory(number):
    """Reports the exceptions of every executor where no memory can be shared."""
    forbid(["memfd_create"], getattr(errno, number))
    facts = {"writable": os.access("/dev/shm", os.W_OK), "threads": threading.active_count()}
    assert Path("/dev/shm").is_dir()
    for executor in ("inline", "thread", "process"):
        facts[executor] = attempt(lambda executor=executor: build(executor).close())
    tell(**facts)
