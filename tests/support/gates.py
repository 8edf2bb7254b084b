"""Environments that wait for a file: a test, not a clock, decides when they finish."""

import contextlib
import threading
import time
from functools import partial
from pathlib import Path

from tests.support.environments import TranscriptEnv

#: The longest wait for a gate to be opened or reached; after it the test fails.
LIMIT_S = 30
#: Long enough that a call has usually begun to wait for a gate when the gate opens.
SOON_S = 0.1


class Gates:
    """Numbered gates: files in one folder, so that any process can wait at them.

    An open gate stays open. Gate 0 does not exist: nothing waits at it.
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
        """Opens the gate after a moment, while the caller waits for an environment at it."""
        timer = threading.Timer(SOON_S, self.open, [number])
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def stand_at(self, number):
        """Waits until the gate is open."""
        if number:
            self._footprint(number).touch()
            _await(self._gate(number), f"gate was not opened: {number}")

    def is_reached(self, number):
        """Whether an environment waits at the gate, or waited there before it was opened."""
        return self._footprint(number).exists()

    def await_arrival(self, number):
        """Waits until an environment reaches the gate."""
        _await(self._footprint(number), f"gate was not reached: {number}")

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
    """A step waits at the gate whose number is its action.

    ``reset(options={"gate": number})`` and ``stand_at(number)`` wait in the same way.
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
