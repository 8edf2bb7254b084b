"""An environment that can fail in every way, in the step that a test chooses."""

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete


class TwoArgumentsError(Exception):
    """Its pickle cannot be loaded: the constructor requires two arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")
        self.second = second


class UnpicklableError(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.lock = threading.Lock()


class RefusesToPickleError(Exception):
    def __reduce__(self):
        raise RuntimeError("this exception stays where it is")


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no text either")


class FaultyBaseError(BaseException):
    """Not a subclass of ``Exception``."""


def _raising(make, *args):
    """A function that raises a new exception."""

    def _raise():
        raise make(*args)

    return _raise


def _raise_chained():
    try:
        _raising(ValueError, "boom", 7)()
    except ValueError as error:
        raise RuntimeError("the outer one") from error


def _recurse():
    _recurse()


def _crash():
    ctypes.string_at(0)


def _hang():
    while True:
        time.sleep(3600)


def _spin():
    while True:
        pass


def limit_memory():
    """Limits this process to a few megabytes more than it has; returns the previous limits."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (16 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    return before


def starve():
    """Acts like a C library that does not check the result of ``malloc``."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    limit_memory()
    while True:
        ctypes.memset(libc.malloc(1 << 20), 1, 1 << 20)


FAULTS = {
    "none": lambda: None,
    "value error": _raising(ValueError, "boom", 7),
    "two arguments": _raising(TwoArgumentsError, "salt", "pepper"),
    "unpicklable": _raising(UnpicklableError, "holds a lock"),
    "refusing": _raising(RefusesToPickleError, "refuses"),
    "unprintable": _raising(UnprintableError, "unprintable"),
    "base exception": _raising(FaultyBaseError, "not an Exception"),
    "system exit": _raising(SystemExit, 3),
    "keyboard interrupt": _raising(KeyboardInterrupt),
    "chained": _raise_chained,
    "long message": lambda: _raising(ValueError, "x" * 5_000_000)(),
    "recursion": _recurse,
    "exit 0": lambda: os._exit(0),
    "exit 3": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crash": _crash,
    "hang": _hang,
    "spin": _spin,
    "hold the GIL": lambda: ctypes.PyDLL(None).sleep(3600),
    "surrogate": _raising(ValueError, "no file 'caf\udce9'"),
}


def fault(name):
    """The action with which :class:`FaultyEnv` commits this fault."""
    return list(FAULTS).index(name)


class FaultyEnv(gym.Env):
    """A random walk without end; the action is the number of the fault that it commits.

    ``reset(options={"faults": {row: name}})`` commits one in the reset.
    """

    action_space = Discrete(len(FAULTS))
    observation_space = Box(-np.inf, np.inf, (3,), np.float64)

    def __init__(self, row=0):
        self.row, self.steps, self.resets = row, 0, 0

    @property
    def pid(self):
        return os.getpid()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        self.commit((options or {}).get("faults", {}).get(self.row, "none"))
        self.walk = self.np_random.normal(size=3)
        return self.walk.copy(), {"resets": self.resets}

    def step(self, action):
        self.commit(list(FAULTS)[int(action)])
        self.steps += 1
        self.walk += self.np_random.normal(size=3)
        return self.walk.copy(), float(self.walk[0]), False, False, {"steps": self.steps}

    def commit(self, name):
        FAULTS[name]()
        return name

    def fail_in_row(self, row, name):
        return self.commit(name if row == self.row else "none")

    def close(self):
        self.closed = True


class FailingAutoresetEnv(FaultyEnv):
    """Episodes of one step; a reset without a seed, such as an autoreset, commits a fault."""

    name = "value error"

    def reset(self, *, seed=None, options=None):
        if seed is None:
            self.commit(self.name)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        obs, reward, _terminated, truncated, info = super().step(action)
        return obs, reward, self.row == 1, truncated, info


class UnclosableEnv(FaultyEnv):
    """Raises when it is closed."""

    def close(self):
        self.commit("value error")


class ExitingEnv(FaultyEnv):
    """Exits when it is closed."""

    def close(self):
        sys.exit("bye")


def build_faulty(row, name):
    """An environment function that commits a fault instead of building anything."""
    FAULTS[name]()
    return FaultyEnv(row)
