"""Rows, environments and assertions that the tests of restarted workers share."""

import os
import signal
from functools import partial

import numpy as np
from gymnasium.spaces import Discrete, OneOf, Sequence, Text

from tests.support.faulty import FAULTS, FaultyEnv, fault
from tests.support.processes import wait_until_gone

MODES = ["NextStep", "SameStep", "Disabled"]
ROWS = [partial(FaultyEnv, row) for row in range(5)]  # two workers: rows 0 to 2 and rows 3 to 4
LOST, OTHERS = [3, 4], [0, 1, 2]
SEED = 5
#: A machine that is busy with others may delay one call, or two, but not as many as this.
ATTEMPTS = 5
NUMBERS = Discrete(len(FAULTS))
WITHOUT_A_SHAPE = {
    "Text": (Text(16), str, str),
    "Sequence": (Sequence(NUMBERS), lambda name: (fault(name),), lambda part: [*FAULTS][part[0]]),
    "OneOf": (
        OneOf([NUMBERS, Text(3)]),
        lambda name: (0, fault(name)),
        lambda part: [*FAULTS][part[1]],
    ),
}


def actions(row=None, name="none"):
    return np.array([fault(name) if row == other else fault("none") for other in range(5)])


def end(pid):
    """Ends a worker and waits until it is gone."""
    os.kill(pid, signal.SIGKILL)
    assert not wait_until_gone([pid], timeout_s=30)


def assert_cut(result):
    """Exactly the rows of the dead worker were truncated, because of a restart."""
    _, rewards, terminations, truncations, infos = result
    assert truncations.tolist() == [False, False, False, True, True]
    assert not terminations.any()
    assert rewards[LOST].tolist() == [0.0, 0.0]
    assert infos["worker_restarted"].tolist() == truncations.tolist()
    assert infos["_worker_restarted"].tolist() == truncations.tolist()


def assert_others_equal(result, undisturbed):
    """The rows of the other worker equal those of a run without the fault."""
    for got, expected in zip(result[:4], undisturbed[:4], strict=True):
        np.testing.assert_array_equal(got[OTHERS], expected[OTHERS])


class ShortEnv(FaultyEnv):
    """Episodes of two steps."""

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        self.left -= 1
        return observation, reward, self.left == 0, truncated, info

    def reset(self, *, seed=None, options=None):
        self.left = 2
        return super().reset(seed=seed, options=options)


class AddressedEnv(FaultyEnv):
    """Reads its fault from an action without a fixed shape."""

    def __init__(self, row, space, read):
        super().__init__(row)
        self.action_space, self.read = space, read

    def step(self, action):
        return super().step(fault(self.read(action)))
