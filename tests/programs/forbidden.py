"""Programs to which the kernel refuses system calls that the core would like to use.

A filter is a small program over the number and the arguments of each call (``seccomp(2)``,
``linux/filter.h``, ``linux/seccomp.h``). It refuses as containers do, or as an old kernel.
"""

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import threading
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import numpy as np

import cartwheel
from tests.programs.registry import program, tell
from tests.programs.scarcity import attempt
from tests.support.environments import TranscriptEnv

#: Numbers of system calls on the architectures of the tests.
NUMBERS = {
    "x86_64": {"futex": 202, "memfd_create": 319, "pidfd_open": 434},
    "aarch64": {"futex": 98, "memfd_create": 279, "pidfd_open": 434},
}
#: The operations of a futex that processes share; the C library uses other ones.
SHARED_WAIT, SHARED_WAKE = 0, 1

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2
#: Instructions: load a word of the description of the call, jump if it is equal, return.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
#: Where the number of the call and its second argument are.
_NUMBER, _SECOND = 0, 24
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid(names, error):
    """Makes these system calls fail with the number ``error`` from now on."""
    fail = (_RETURN, 0, 0, _FAIL | error)
    instructions = [(_LOAD, 0, 0, _NUMBER)]
    for name in names:
        number = NUMBERS[platform.machine()][name]
        if name == "futex":
            body = [(_LOAD, 0, 0, _SECOND)]
            for operation in (SHARED_WAIT, SHARED_WAKE):
                body += [(_JUMP_IF_EQUAL, 0, 1, operation), fail]
            body.append((_RETURN, 0, 0, _ALLOW))
        else:
            body = [fail]
        instructions += [(_JUMP_IF_EQUAL, 0, len(body), number), *body]
    instructions.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    program = _Program(len(instructions), code)
    library = ctypes.CDLL(None, use_errno=True)
    calls = (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0)),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program)),
    )
    for option, value, more in calls:
        if library.prctl(option, value, more, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"prctl: {os.strerror(number)}")


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
    # Python starts these once, for the default start method of Python 3.14.
    forkserver.ensure_running()
    resource_tracker.ensure_running()
    forbid(["memfd_create"], getattr(errno, number))
    facts = {"writable": os.access("/dev/shm", os.W_OK), "threads": threading.active_count()}
    assert Path("/dev/shm").is_dir()
    for executor in ("inline", "thread", "process"):
        facts[executor] = attempt(lambda executor=executor: build(executor).close())
    tell(**facts)
