"""Environments that wait for a file: a test decides when they are done, and no clock does."""

import contextlib
import threading
import time
from functools import partial
from pathlib import Path

from tests.support.environments import TranscriptEnv

#: Where nobody opens a gate, or arrives at it, for so long, nobody will: the test has failed.
LIMIT_S = 30
#: Long enough that a call has usually begun to wait when the gate opens that it waits for.
SOON_S = 0.1


class Gates:
    """Numbered gates: files of one folder, so that whoever stands there may be in any process.

    Once open a gate stays open. There is none of number 0: who is sent there passes.
    """

    def __init__(self, path):
        self.path = Path(path)

    def env_fns(self, num_envs):
        return [partial(GatedEnv, self)] * num_envs

    def open(self, *numbers):
        for number in numbers:
            self._gate(number).touch()

    @contextlib.contextmanager
    def opened_soon(self, number):
        """For a call that has to wait for somebody who stands there."""
        timer = threading.Timer(SOON_S, self.open, [number])
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def stand_at(self, number):
        """Returns when the gate is open."""
        if number:
            self._footprint(number).touch()
            _await(self._gate(number), f"nobody opened gate {number}")

    def is_reached(self, number):
        """Whether somebody stands at the gate, or stood there before it was opened."""
        return self._footprint(number).exists()

    def await_arrival(self, number):
        """Returns when the gate is reached."""
        _await(self._footprint(number), f"nobody came to gate {number}")

    def _gate(self, number):
        return self.path / f"gate-{number}"

    def _footprint(self, number):
        return self.path / f"before-gate-{number}"


def _await(file, otherwise):
    deadline = time.monotonic() + LIMIT_S
    while not file.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{otherwise} within {LIMIT_S} s")
        time.sleep(0.001)


class GatedEnv(TranscriptEnv):
    """A step is done when the gate is open that its action is the number of.

    ``reset(options={"gate": number})`` and ``stand_at(number)`` wait likewise.
    """

    def __init__(self, gates):
        super().__init__(1000)
        self.gates = gates

    def reset(self, *, seed=None, options=None):
        self.stand_at((options or {}).get("gate", 0))
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.stand_at(int(action))
        return super().step(action)

    def stand_at(self, number):
        self.gates.stand_at(number)
        return number
