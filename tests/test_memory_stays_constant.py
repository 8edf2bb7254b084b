"""A batch takes memory for as long as somebody looks at it, and not a moment longer."""

import gc
import warnings
from collections import deque
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given, settings
from hypothesis import strategies as st

import cartwheel
from tests.environments import TranscriptEnv
from tests.executors import EXECUTORS
from tests.in_parts import PATIENCE_S

NUM_ENVS = 3


class CountingEnv(TranscriptEnv):
    """Every number of the observation says how many steps were taken; too large to be copied."""

    observation_space = Box(0, np.inf, (600,), np.float64)

    def __init__(self):
        super().__init__(10**9)

    def observe(self):
        return np.full(600, self.t, np.float64)


def native(env_fns, **keywords):
    """As many batches as in the other executors; rows enough that they are not copied."""
    return cartwheel.NativeVectorEnv("CartPole-v1", 300 * len(env_fns), **keywords)


@pytest.fixture(params=[*EXECUTORS, native], ids=["inline", "thread", "process", "native"])
def build_any(request):
    built = []

    def build(**keywords):
        built.append(request.param([CountingEnv] * NUM_ENVS, **keywords))
        built[-1].reset(seed=1)
        return built[-1]

    yield build
    for envs in built:
        envs.close()


def actions(envs, size=None):
    return np.ones(envs.num_envs if size is None else size, np.int64)


def step_all(envs):
    return envs.step(actions(envs))[0]


def step_in_parts(envs):
    """All rows, in two sends that are received together."""
    half = envs.num_envs // 2
    envs.send(actions(envs, half), np.arange(half))
    envs.send(actions(envs, envs.num_envs - half), np.arange(half, envs.num_envs))
    return envs.recv(PATIENCE_S)[0]


HOWS = pytest.mark.parametrize("how", [step_all, step_in_parts], ids=["step", "send"])


@HOWS
def test_every_array_of_ten_thousand_steps_keeps_its_values(build_any, how):
    """More than there are slabs: the first ones are views, the others copies, and none changes."""
    envs = build_any(max_slabs=300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = [how(envs)]
        sums = [kept[0].sum()]
        for _ in range(9_999):
            kept.append(how(envs)[:, :2])  # two numbers a row hold as much as all of them
            sums.append(kept[-1].sum())
            if len(kept) > 400:
                kept[-1] = kept[-1].copy()
    assert len(caught) == 1, [str(warning.message) for warning in caught]
    assert "max_slabs" in str(caught[0].message)
    assert sum(array.base is not None for array in kept) >= 300
    envs.close()
    assert [array.sum() for array in kept] == sums


@HOWS
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_loop_that_keeps_a_few_batches_uses_a_constant_number_of_slabs(build_any, how, length):
    envs = build_any()
    kept = deque(maxlen=length)
    for _ in range(length + 2):
        kept.append(how(envs))
    slabs = envs._pool.num_slabs()
    assert slabs <= length + 3  # one is filled while the others are kept, one stands in reserve
    for _ in range(500):
        kept.append(how(envs))
    assert envs._pool.num_slabs() == slabs


@HOWS
def test_a_slab_is_free_as_soon_as_the_last_view_of_it_is_gone(build_any, how):
    """The newest first: memory that was just used is used again."""
    envs = build_any()
    kept = [how(envs) for _ in range(6)]
    slabs = envs._pool.num_slabs()
    addresses = {array.ctypes.data for array in kept}
    view = kept[2][1:, ::2].T
    again = kept[2].ctypes.data
    del kept
    gc.collect()
    for _ in range(20):
        observations = how(envs)
        assert observations.ctypes.data in addresses - {again}
        del observations
    del view
    assert how(envs).ctypes.data == again
    assert envs._pool.num_slabs() == slabs


def resident_bytes():
    """Memory of this program, anonymous and shared, that lies in RAM."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmRSS")))


@HOWS
def test_resident_memory_stays_flat(build_any, how):
    """The million steps are in ``benchmarks/resident_memory.py``."""
    envs = build_any()
    kept = deque(maxlen=2)
    for _ in range(1000):
        kept.append(how(envs))
    gc.collect()
    before = resident_bytes()
    for _ in range(4000):
        kept.append(how(envs))
    gc.collect()
    batch = kept[0].nbytes
    assert resident_bytes() - before < 100 * batch  # a leak of each batch would be forty times that


def test_where_no_slab_is_left_for_rows_in_flight_they_are_copied_after_one_warning(build_any):
    """As many batches are open at once as there are rows, and all of them are kept."""
    envs = build_any(max_slabs=2, batch_size=100 if native_rows(build_any) else 1)
    drain(envs)
    kept, copies = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(12):
            envs.send(actions(envs), np.arange(envs.num_envs))
            while envs._pool.in_flight():
                kept.append(envs.recv(PATIENCE_S)[0])
                copies.append(kept[-1].copy())
    assert len(caught) <= 1, [str(warning.message) for warning in caught]
    for array, copy in zip(kept, copies, strict=True):
        assert array.tobytes() == copy.tobytes()
    slabs = envs._pool.num_slabs()
    kept.clear()
    for _ in range(5):
        envs.send(actions(envs), np.arange(envs.num_envs))
        drain(envs)
    assert envs._pool.num_slabs() == slabs
