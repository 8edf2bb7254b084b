"""However and whenever a worker process dies, the error names it, and the other workers close."""

import ctypes
import os
import re
import signal
import threading
import time
from functools import partial

import pytest

import cartwheel
from tests.support.faulty import FaultyEnv, starve
from tests.support.processes import wait_until_gone


def _null():
    ctypes.string_at(0)


#: Ways to die, and the exit code of each.
DEATHS = {
    "SIGKILL": (lambda: os.kill(os.getpid(), signal.SIGKILL), -signal.SIGKILL),
    "null": (_null, -signal.SIGSEGV),
    "exit 0": (lambda: os._exit(0), 0),
    "exit 3": (lambda: os._exit(3), 3),
    "SIGTERM": (lambda: os.kill(os.getpid(), signal.SIGTERM), -signal.SIGTERM),
    "no memory": (starve, -signal.SIGSEGV),
}
PHASES = ["construct", "reset", "step", "idle", "close"]
CASES = [
    *[("fork", death, phase) for death in DEATHS for phase in PHASES],
    # The start method hardly matters for how a process dies: a diagonal of the matrix is enough.
    *[
        (context, death, PHASES[(at + shift) % len(PHASES)])
        for shift, context in enumerate(["forkserver", "spawn"])
        for at, death in enumerate(DEATHS)
    ],
]
ROWS, ROW = 5, 3  # two workers: rows 0 to 2 and rows 3 to 4


class MortalEnv(FaultyEnv):
    """Dies in one phase; in ``idle``, after `die_soon`, while no call is pending."""

    def __init__(self, row, death, phase, gates):
        super().__init__(row)
        self.gates = gates
        self.death, self.phase = death, phase if row == ROW else None
        self.pass_through("construct")

    def pass_through(self, phase):
        if phase == self.phase:
            DEATHS[self.death][0]()

    def reset(self, *, seed=None, options=None):
        self.pass_through("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.pass_through("step")
        return super().step(action)

    def close(self):
        self.pass_through("close")
        super().close()

    def die_soon(self):
        """Dies when gate 1 opens, so that the caller can receive the answer first."""
        if self.phase == "idle":
            threading.Thread(target=self._die_at_the_gate, daemon=True).start()

    def _die_at_the_gate(self):
        self.gates.stand_at(1)
        self.pass_through("idle")


@pytest.mark.parametrize(("context", "death", "phase"), CASES)
def test_every_death_is_named(build_processes, context, death, phase, gates):
    build = partial(build_processes, context=context)
    env_fns = [partial(MortalEnv, row, death, phase, gates) for row in range(ROWS)]
    if phase == "construct":
        with pytest.raises(cartwheel.WorkerDiedError) as failure:
            build(env_fns)
        assert_named(failure.value, DEATHS[death][1], "construct")
        return
    envs = build(env_fns)
    pids = envs.get_attr("pid")
    if phase == "reset":
        with pytest.raises(cartwheel.WorkerDiedError) as failure:
            envs.reset()
    elif phase == "step":
        envs.reset()
        with pytest.raises(cartwheel.WorkerDiedError) as failure:
            envs.step([0] * ROWS)
    elif phase == "idle":
        envs.reset()
        envs.call("die_soon")
        gates.open(1)
        assert not wait_until_gone(pids[ROW:], timeout_s=30)
        with pytest.raises(cartwheel.WorkerDiedError) as failure:
            envs.step([0] * ROWS)
    if phase != "close":
        named = {"idle": "step"}.get(phase, phase)
        assert_named(failure.value, DEATHS[death][1], named)
        assert failure.value.pid == pids[ROW]
        for later in (lambda: envs.step([0] * ROWS), envs.reset, lambda: envs.call("die_soon")):
            with pytest.raises(cartwheel.WorkerDiedError) as failure:
                later()
            assert_named(failure.value, DEATHS[death][1], named)
    began = time.monotonic()
    envs.close()
    assert time.monotonic() - began < 20, "far above the grace period, far below the test's limit"
    assert envs.closed
    assert not wait_until_gone(pids, timeout_s=30)


def assert_named(error, code, phase):
    assert (error.worker, list(error.env_index)) == (1, [3, 4])
    assert (error.exitcode, error.phase) == (code, phase)
    for part in ("rows 3 to 4", str(error.pid), phase):
        assert part in str(error)
    how = f"code {code}" if code >= 0 else f"{signal.Signals(-code).name}|signal {-code}"
    assert re.search(how, str(error)), str(error)
