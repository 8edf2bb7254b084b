"""Programs whose signal handler closes the vector environment that a call waits for."""

import os
import signal
import tempfile
import threading
from functools import partial
from pathlib import Path

from gymnasium.error import ClosedEnvironmentError

import cartwheel
from tests.programs.registry import program, tell
from tests.support.gates import GatedEnv, Gates

#: A close that waits for the call in which it was made does not return within the limit of a test.
_HOUR_S = 3600


class _ClosedEnv(GatedEnv):
    """Says that it was closed; the second one of a row stands at gate 2 while it is made."""

    def __init__(self, gates, row):
        super().__init__(gates)
        self.row = row
        made = Path(gates.path, f"made-{row}")
        if made.exists():
            gates.stand_at(2)
        made.touch()

    def close(self):
        Path(self.gates.path, f"closed-{self.row}").touch()


@program
def close_in_a_signal_handler(executor, where):
    """A handler closes while a step, a message, or the restart of a worker is waited for."""
    gates = Gates(tempfile.mkdtemp())
    workers = 1 if where == "message" else 2
    envs = cartwheel.VectorEnv(
        [partial(_ClosedEnv, gates, row) for row in range(2)],
        executor=executor,
        num_workers=workers,
        on_worker_death="restart" if where == "restart" else "raise",
    )
    envs.reset()
    processes = [process.pid for process in envs.processes]
    gate = 2 if where == "restart" else 1

    def handler(*_):
        gates.open(1)  # the signal may come before the call
        envs.close(timeout=_HOUR_S)

    def interrupt():
        gates.await_arrival(gate)
        os.kill(os.getpid(), signal.SIGALRM)

    signal.signal(signal.SIGALRM, handler)
    threading.Thread(target=interrupt).start()
    raised = None
    try:
        if where == "restart":
            os.kill(processes[0], signal.SIGKILL)
            envs.step([0, 0])
        elif where == "message":  # the worker does not read it
            envs.send([1], [0])
            envs.send_reset(options={"env_index": [1], "large": bytes(10_000_000)})
            envs.recv()
        else:
            envs.step([1, 0])
    except ClosedEnvironmentError as error:
        raised = type(error).__name__
    closed = [Path(gates.path, f"closed-{row}").exists() for row in range(2)]
    try:
        envs.step([0, 0])
    except ClosedEnvironmentError:
        tell(raised=raised, closed=closed, processes=processes)
