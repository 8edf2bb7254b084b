"""A view of a pool's memory is valid after the pool is closed, collected and replaced."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box

from cartwheel import _cartwheel
from tests.support.cases import POLE
from tests.support.environments import SamplingEnv
from tests.support.executors import EXECUTORS, NATIVE
from tests.support.in_parts import PATIENCE_S


class WideEnv(SamplingEnv):
    """Its observations are large enough to be views; small ones are copied."""

    def __init__(self):
        super().__init__(Box(-1, 1, (500,), np.float64), length=7)


#: There are so many native rows that their batches are views too.
BUILDERS = {
    **{str(executor): partial(executor, [WideEnv] * 3) for executor in EXECUTORS},
    "native": partial(NATIVE, [POLE] * 400),
}


def actions(envs):
    return np.zeros(envs.num_envs, np.int64)


def of_reset(envs):
    return [envs.reset(seed=1)[0]]


def of_step(envs):
    envs.reset(seed=1)
    return [envs.step(actions(envs))[0] for _ in range(3)]


def of_recv(envs):
    envs.reset(seed=1)
    envs.send(actions(envs), np.arange(envs.num_envs))
    return [envs.recv(PATIENCE_S)[0]]


def of_a_rollout(envs):
    envs.reset(seed=1)
    rollout = envs.rollout(4)
    for _ in range(4):
        envs.step(actions(envs))
    parts = [rollout.observations, rollout.rewards, rollout.terminated, rollout.truncated]
    del rollout
    return parts


def of_an_unfinished_rollout(envs):
    envs.reset(seed=1)
    rollout = envs.rollout(4)
    envs.step(actions(envs))
    return [rollout.observations, rollout.rewards]


#: The owners of the memory of a slab and of a rollout.
OWNERS = (_cartwheel.SlabLease, _cartwheel.RolloutSlab)
SOURCES = [of_reset, of_step, of_recv, of_a_rollout, of_an_unfinished_rollout]


def close(envs):
    envs.close()


def collect(envs):
    """Does nothing: the caller drops its reference."""


def close_with_rows_in_flight(envs):
    envs.send_reset()  # `send` would be refused: the rollout is not finished
    envs.close()


def owner(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("end", [close, collect, close_with_rows_in_flight])
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_arrays_are_read_and_written_when_everything_else_is_gone(build, end):
    envs = build()
    kept = [array for source in SOURCES for array in source(envs)]
    assert all(isinstance(owner(array), OWNERS) for array in kept)
    views = [part for array in kept[:1] for part in (array[1:], array.T, array.view(np.uint8))]
    copies = [array.copy() for array in kept + views]
    end(envs)
    pool = weakref.ref(envs)
    del envs
    gc.collect()
    assert pool() is None, "nothing but the arrays is left"
    other = build()  # would reuse memory that was freed too early
    for source in SOURCES:
        source(other)
    other.close()
    for array, copy in zip(kept + views, copies, strict=True):
        assert array.tobytes() == copy.tobytes()
    for number, array in enumerate(kept):
        array[...] = number % 2
    for number, array in enumerate(kept):
        assert (array == array.dtype.type(number % 2)).all()
