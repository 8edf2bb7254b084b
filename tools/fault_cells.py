"""One fault in one executor: ``python -m tools.fault_cells FAULT EXECUTOR [close]``.

The program prints a line of JSON after each stage: the vector environment is built; the outcome of
the call in which the fault happened; the outcome of a reset and some steps after it (not with
``close``); and the outcome of ``close()``. If the program hangs, the last line shows where.
``tools.fault_table`` runs all faults in all executors.
"""

import contextlib
import json
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import cartwheel
from tests.support.faulty import FAULTS, FaultyEnv, limit_memory, starve
from tests.support.processes import descendants

NUM_ENVS = 4
#: The row in which the fault happens. Of two workers, the second has this row and row 2.
ROW = 3
#: Iterations of computation that take a thread some tenths of a second, and practically forever.
LONG, ENDLESS = 50_000_000, 10**15


def _unpicklable_info():
    return {"lock": threading.Lock()}


def _late():
    time.sleep(1)


def _memory():
    """Allocates until the memory limit is reached."""
    before = limit_memory()
    try:
        return {"blocks": [bytearray(1 << 20) for _ in range(1000)]}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


TROUBLES = {
    **FAULTS,
    "unpicklable info": _unpicklable_info,
    "late": _late,
    "memory": _memory,
    "starved": starve,
}


class TroubledEnv(FaultyEnv):
    """A random walk. Action 1 causes the fault, and its time is written to the file ``note``."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, row, trouble, note):
        super().__init__(row)
        self.trouble, self.note = trouble, note

    def step(self, action):
        extra = None
        if action:
            self.note.write_text(str(time.monotonic()))
            extra = TROUBLES[self.trouble]()
        *result, info = super().step(0)
        return *result, {**info, **(extra or {})}


def troubled_constructor(row, trouble, note):
    """An environment function that causes the fault in the row :data:`ROW`."""
    if row == ROW:
        note.write_text(str(time.monotonic()))
        TROUBLES[trouble]()
    return TroubledEnv(row, "none", note)


POLICIES: dict[str, Any] = {"on_error": "restart", "on_worker_death": "restart"}
BUILDERS: dict[str, Any] = {
    "inline": partial(cartwheel.VectorEnv, executor="inline"),
    "thread": partial(cartwheel.VectorEnv, executor="thread", num_workers=2),
    "process": partial(cartwheel.VectorEnv, executor="process", num_workers=2),
    "process, policies": partial(
        cartwheel.VectorEnv, executor="process", num_workers=2, **POLICIES
    ),
    "native": cartwheel.NativeVectorEnv,
    "AsyncVectorEnv": AsyncVectorEnv,
}


class Cell:
    """A vector environment in which one fault will happen."""

    def __init__(self, executor, trouble, *, in_constructor=False, timeout=None):
        self.note = Path(tempfile.mkstemp()[1])
        self.pids = []
        make = troubled_constructor if in_constructor else TroubledEnv
        self.env_fns = [partial(make, row, trouble, self.note) for row in range(NUM_ENVS)]
        # Gymnasium's constructor has no `timeout`.
        self.limit = {} if executor == "AsyncVectorEnv" else {"timeout": timeout}
        self.build = lambda: BUILDERS[executor](self.env_fns, **self.limit)
        self.oracle = lambda: SyncVectorEnv(
            [partial(TroubledEnv, row, "none", self.note) for row in range(NUM_ENVS)]
        )
        self.fine, self.troubled = np.zeros(NUM_ENVS, np.int64), np.arange(NUM_ENVS) // ROW

    def open(self):
        self.envs = self.build()
        with contextlib.suppress(AttributeError):
            self.pids = self.envs.get_attr("pid")
        self.envs.reset(seed=1)
        tell("made")

    def since(self):
        """Seconds since the fault."""
        return time.monotonic() - float(self.note.read_text())

    def call(self, function):
        """Reports the outcome of the call in which the fault happens."""
        outcome, says = "returns", []
        try:
            result = function()
            if result is not None:
                outcome = self.describe(result[4])
        except BaseException as error:
            outcome, says = type(error).__name__, self.said(error)
        tell("call", outcome=outcome, says=says, seconds=self.since())

    def describe(self, infos):
        for name in ("env_error", "worker_restarted"):
            if name in infos and infos[f"_{name}"][ROW]:
                rows = np.flatnonzero(infos[f"_{name}"]).tolist()
                return f"returns, {name} in rows {rows}"
        return "returns"

    def said(self, error):
        """Which facts an exception contains."""
        text = "".join(traceback.format_exception(error))
        own = "\n".join([str(error), str(error.__cause__), *getattr(error, "__notes__", [])])
        facts = {
            "row": re.search(rf"(?i)\brows? (\d to |\[[\d, ]*)?{ROW}\b", own),
            "pid": self.pids and re.search(rf"\b{self.pids[ROW]}\b", own),
            "how it ended": re.search(r"SIG[A-Z]+|code \d", own),
            "traceback": re.search(r"fault(y|_cells)\.py.* in (step|commit|_|troubled)", text),
        }
        return [name for name, there in facts.items() if there]

    def reset(self, *, bounded=False):
        """Reports the outcome of a reset with a seed and three steps after the fault."""
        began, outcome = time.monotonic(), "works"
        try:
            if bounded:
                self.envs.reset_async(seed=7)
                observations, _ = self.envs.reset_wait(timeout=2)
            else:
                observations, _ = self.envs.reset(seed=7)
            seconds = time.monotonic() - began
            oracle = self.oracle()
            same = np.array_equal(observations, oracle.reset(seed=7)[0])
            for _ in range(3):
                result = self.envs.step(self.fine)[:4]
                same &= all(map(np.array_equal, result, oracle.step(self.fine)[:4]))
            outcome = "works" if same else "wrong values"
        except BaseException as error:
            seconds, outcome = time.monotonic() - began, type(error).__name__
        tell("reset", outcome=outcome, seconds=seconds)

    def close(self):
        began, outcome = time.monotonic(), "returns"
        try:
            self.envs.close()
        except BaseException as error:
            outcome = type(error).__name__
        tell("close", outcome=outcome, seconds=time.monotonic() - began)

    # The faults

    def step(self):
        """The environment fails in a step."""
        self.open()
        self.call(lambda: self.envs.step(self.troubled))

    def construct(self):
        """The environment fails in its constructor."""
        self.call(self.open)
        sys.exit()

    def wait(self):
        """The environment fails in a step; the wait for it has a timeout of 0.3 s."""
        self.open()
        self.envs.step_async(self.troubled)
        self.call(lambda: self.envs.step_wait(timeout=0.3))

    def interrupt(self):
        """Ctrl-C reaches the whole process group during a step."""
        self.open()

        def interrupt():
            self.note.write_text(str(time.monotonic()))
            os.killpg(0, signal.SIGINT)

        timer = threading.Timer(0.3, interrupt)

        def step():
            timer.start()
            return self.envs.step(self.troubled)

        self.call(step)
        timer.join()

    def threads(self):
        """Four threads step at once."""
        self.open()
        self.note.write_text(str(time.monotonic()))
        barrier, outcomes = threading.Barrier(4), Counter()

        def step():
            barrier.wait()
            try:
                self.envs.step(self.troubled)
                outcomes["returns"] += 1
            except Exception as error:
                outcomes[type(error).__name__] += 1

        threads = [threading.Thread(target=step) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        outcome = ", ".join(f"{count} × {name}" for name, count in sorted(outcomes.items()))
        tell("call", outcome=outcome, says=[], seconds=self.since())

    def killed(self):
        """The program itself is killed with SIGKILL while a worker hangs."""
        self.open()
        self.envs.step_async(self.troubled)
        time.sleep(0.3)
        tell("ready")
        time.sleep(3600)

    def closing(self):
        """``close()`` is called while a worker hangs."""
        self.open()
        self.envs.step_async(self.troubled)
        time.sleep(0.3)
        self.close()
        sys.exit()


class NativeCell(Cell):
    """The same for native environments, which panic instead of raising."""

    def __init__(self, executor, trouble, **keywords):
        super().__init__(executor, trouble, **keywords)
        self.panics = trouble == "value error"
        work = ENDLESS if trouble == "hang" else LONG
        env_id, keywords = ("Acrobot-v1", {}) if self.panics else ("Null-v0", {"work": work})
        make = partial(cartwheel.NativeVectorEnv, env_id, NUM_ENVS)
        self.build = partial(make, num_workers=2, **self.limit, **keywords)
        self.oracle = partial(make, num_workers=1)  # `work` does not change any value
        self.troubled = self.fine

    def open(self):
        super().open()
        if self.panics:
            states = list(self.envs.get_attr("state"))
            states[ROW] = np.full(4, np.inf)
            self.envs.set_attr("state", states)
        self.note.write_text(str(time.monotonic()))


#: For each fault: the method of `Cell` that runs it, and what the environment does.
CELLS = {
    "`raise ValueError` (natively: a panic) in a step": ("step", "value error"),
    "an exception with two required arguments": ("step", "two arguments"),
    "an info that cannot be pickled": ("step", "unpicklable info"),
    "`os._exit(3)` in a step": ("step", "exit 3"),
    "SIGKILL in a step": ("step", "kill"),
    "a segmentation fault in a step": ("step", "crash"),
    "no memory left, in Python code": ("step", "memory"),
    "no memory left, in C code that does not check": ("step", "starved"),
    "a step that takes 1 s, waited for 0.3 s": ("wait", "late"),
    "a step that hangs, waited for 0.3 s": ("wait", "hang"),
    "Ctrl-C in a step of 1 s, to all processes": ("interrupt", "late"),
    "a constructor raises": ("construct", "value error"),
    "a constructor calls `os._exit(3)`": ("construct", "exit 3"),
    "four threads step at once": ("threads", "late"),
    "SIGKILL of the program while a worker hangs": ("killed", "hang"),
    "`close()` while a worker hangs": ("closing", "hang"),
}
NATIVE = {
    "`raise ValueError` (natively: a panic) in a step",
    "a step that takes 1 s, waited for 0.3 s",
    "a step that hangs, waited for 0.3 s",
    "Ctrl-C in a step of 1 s, to all processes",
    "four threads step at once",
    "SIGKILL of the program while a worker hangs",
    "`close()` while a worker hangs",
}
POLICED = {how for how, (kind, trouble) in CELLS.items() if kind == "step"}


def tell(stage, **facts):
    print(json.dumps({"stage": stage, **facts}), flush=True)


def main():
    # A shell makes background jobs ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fault, executor, *rest = sys.argv[1:]
    how, trouble = CELLS[fault]
    cls = NativeCell if executor == "native" else Cell
    timeout = 2 if how == "wait" else None
    cell = cls(executor, trouble, in_constructor=how == "construct", timeout=timeout)
    try:
        getattr(cell, how)()
        if not rest:
            cell.reset(bounded=how == "wait")
        cell.close()
        tell("left", processes=len(descendants(os.getpid())))
    finally:
        cell.note.unlink()


if __name__ == "__main__":
    main()
