"""A vector environment that what it holds refers to is garbage, and a collection ends it."""

import gc
import weakref

import numpy as np
import pytest

import cartwheel
from tests.support.executors import INLINE, PROCESS
from tests.support.faulty import FaultyEnv


def assert_collected(envs):
    """The caller has dropped everything; nothing but its own parts refers to ``envs()``."""
    assert envs() is not None, "the garbage has no cycle"
    gc.collect()
    assert envs() is None


def test_inline_environments_that_refer_to_their_vector_environment_are_closed_and_collected():
    closed = []

    class KnowingEnv(FaultyEnv):
        whole = None

        def step(self, action):
            # The parts that native code keeps between calls lead to the vector environment, too.
            obs, *outcome, info = super().step(action)
            return obs.view(KnowingArray), *outcome, {**info, "me": self}

        def close(self):
            closed.append(self.whole.num_envs)

    class KnowingArray(np.ndarray):
        pass

    class Knowing:
        def __init__(self, whole):
            self.whole = whole

        def __deepcopy__(self, _):
            return self

    def use():
        envs = INLINE([KnowingEnv] * 2)
        envs.set_attr("whole", envs)
        envs.reset()
        envs.step([0, 0])
        envs.next_reset(options={"me": Knowing(envs)}, env_index=[0])
        return weakref.ref(envs)

    assert_collected(use())
    assert closed == [2, 2]


def test_workers_whose_environment_functions_refer_to_their_vector_environment_end():
    def use():
        box = []
        envs = PROCESS([lambda: FaultyEnv(len(box))] * 2, context="fork")
        box.append(envs)
        envs.reset()
        return weakref.ref(envs), envs.processes

    envs, processes = use()
    assert_collected(envs)
    assert len(processes) == 2  # the check after each test finds those that have not ended


def test_an_exception_that_drops_the_last_reference_to_an_open_pool_goes_on():
    """As Ctrl-C does when the pool was just made. Inline, its end closes the environments."""
    closed = []

    class ClosedEnv(FaultyEnv):
        def close(self):
            closed.append(self)

    envs = cartwheel.VectorEnv([ClosedEnv] * 2, executor="inline")
    envs._finalizer.detach()
    pools = [envs.__dict__.pop("_pool")]
    with pytest.raises(ZeroDivisionError):
        _ = [pools.pop(), 1 / 0]
    assert len(closed) == 2
