"""A batch takes memory as long as an array refers to it, and no longer."""

import gc
import warnings
from collections import deque
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.spaces import Box

from cartwheel import _cartwheel
from tests.support.cases import POLE
from tests.support.environments import TranscriptEnv
from tests.support.executors import EXECUTORS, NATIVE
from tests.support.in_parts import PATIENCE_S
from tests.support.processes import resident_kib
from tests.support.random_examples import given, settings, st
from tests.support.repetitions import times

NUM_ENVS = 3


class CountingEnv(TranscriptEnv):
    """Its observations are filled with the number of steps; they are too large to be copied."""

    observation_space = Box(0, np.inf, (300,), np.float64)

    def __init__(self):
        super().__init__(10**9)

    def observe(self):
        return np.full(300, self.t, np.float64)


#: There are so many native rows that their batches are not copied either.
BUILDERS = {
    **{str(executor): (partial(executor, [CountingEnv] * NUM_ENVS), 2) for executor in EXECUTORS},
    "native": (partial(NATIVE, [POLE] * 150 * NUM_ENVS), 300),
}


@pytest.fixture(params=BUILDERS.values(), ids=list(BUILDERS))
def build_any(request, closes):
    """Builds rows and resets them; ``batch_size`` is two thirds of the rows."""
    builder, batch_size = request.param

    def build(**keywords):
        envs = closes(builder(**keywords))
        envs.reset(seed=1)
        return envs

    build.batch_size = batch_size
    return build


def actions(envs, size=None):
    return np.ones(envs.num_envs if size is None else size, np.int64)


def step_all(envs):
    return envs.step(actions(envs))[0]


def step_in_parts(envs):
    """Steps all rows in two sends, which are received together."""
    half = envs.num_envs // 2
    envs.send(actions(envs, half), np.arange(half))
    envs.send(actions(envs, envs.num_envs - half), np.arange(half, envs.num_envs))
    return envs.recv(PATIENCE_S)[0]


HOWS = pytest.mark.parametrize("how", [step_all, step_in_parts], ids=["step", "send"])


def is_view(array):
    return isinstance(array.base, _cartwheel.SlabLease)


@pytest.mark.parametrize(
    ("how", "limit", "steps"),
    [
        (step_all, None, times(1_100, with_full=10_000)),
        (step_in_parts, 300, times(400, with_full=2_000)),
    ],
)
def test_every_array_of_more_steps_than_slabs_keeps_its_values(build_any, how, limit, steps):
    """The first are views, by default 1024 of them, the others copies, and none changes."""
    envs = build_any(max_batches=limit)
    kept, sums = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(steps):
            kept.append(how(envs))
            sums.append(kept[-1].sum())
    assert len(caught) == 1, [str(warning.message) for warning in caught]
    assert "max_batches" in str(caught[0].message)
    views = limit or 1024
    assert [is_view(array) for array in kept] == [True] * views + [False] * (steps - views)
    envs.close()
    assert [array.sum() for array in kept] == sums


@HOWS
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_loop_that_keeps_a_few_batches_uses_a_constant_number_of_slabs(build_any, how, length):
    envs = build_any()
    kept = deque(maxlen=length)
    for _ in range(length + 2):
        kept.append(how(envs))
    slabs = envs.stats().batches_reserved
    assert slabs <= length + 3  # one is filled while others are kept, one is in reserve
    for _ in range(500):
        kept.append(how(envs))
    assert envs.stats().batches_reserved == slabs


@HOWS
def test_a_slab_is_free_as_soon_as_the_last_view_of_it_is_gone(build_any, how):
    """The slab that was freed last is used first."""
    envs = build_any()
    kept = [how(envs) for _ in range(6)]
    slabs = envs.stats().batches_reserved
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
    assert envs.stats().batches_reserved == slabs


@HOWS
def test_resident_memory_stays_flat(build_any, how):
    """``benchmarks/process/resident_memory.py`` runs a million steps."""
    envs = build_any()
    kept = deque(maxlen=2)
    for _ in range(times(400, with_full=1000)):
        kept.append(how(envs))
    gc.collect()
    before, steps = resident_kib(), times(1000, with_full=2000)
    for _ in range(steps):
        kept.append(how(envs))
    gc.collect()
    batch = kept[0].nbytes
    assert (
        1024 * (resident_kib() - before) < steps // 10 * batch
    )  # leaking every batch would be ten times that


def receive_all(envs):
    """Receives everything in flight; returns the observations of each batch."""
    received = []
    while envs._pool.in_flight():
        received.append(envs.recv(PATIENCE_S)[0])
    return received


def test_rows_in_flight_are_copied_after_one_warning_when_no_slab_is_left(build_any):
    """Two batches are filled at once, and every batch is kept."""
    envs = build_any(max_batches=2, batch_size=build_any.batch_size)
    receive_all(envs)
    kept, copies = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(12):
            envs.send(actions(envs, envs.num_envs), np.arange(envs.num_envs))
            kept += receive_all(envs)
            copies += [array.copy() for array in kept[len(copies) :]]
    assert len(caught) == 1, [str(warning.message) for warning in caught]
    assert sum(map(is_view, kept)) >= 2
    for array, copy in zip(kept, copies, strict=True):
        assert array.tobytes() == copy.tobytes()
    slabs = envs.stats().batches_reserved
    kept.clear()
    for _ in range(5):
        envs.send(actions(envs, envs.num_envs), np.arange(envs.num_envs))
        receive_all(envs)
    assert envs.stats().batches_reserved == slabs


class Keeper:
    """The arrays that a caller keeps, with copies from when they were received."""

    def __init__(self):
        self.kept = []

    def keep(self, observations, part):
        view = (observations, observations[:1], observations[::-1], observations.T)[part]
        self.kept.append((view, view.copy()))

    def drop(self, which):
        if self.kept:
            self.kept.pop(which % len(self.kept))

    def assert_untouched(self):
        for view, copy in self.kept:
            assert view.tobytes() == copy.tobytes()
        ranges = sorted(np.lib.array_utils.byte_bounds(view) for view, _ in self.kept)
        for (_, end), (start, _) in pairwise(ranges):
            assert end <= start, "two batches share memory"


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 7)),
        st.tuples(st.just("receive"), st.integers(0, 3)),
        st.tuples(st.just("receive"), st.just(None)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
    ),
    min_size=20,
    max_size=80,
)


@pytest.mark.parametrize("whole", [True, False], ids=["all rows", "some rows"])
def test_kept_arrays_never_change_whatever_is_kept_and_dropped(build_any, whole):
    """Rows are sent and received, arrays kept and dropped, in any order."""
    envs = build_any(max_batches=6, batch_size=None if whole else build_any.batch_size)
    receive_all(envs)
    most = 6 + (1 if whole else 3)  # slabs that may be kept, are being filled, or are being copied

    @settings(max_examples=times(6, with_full=25))
    @given(OPERATIONS)
    def check(operations):
        keeper, third = Keeper(), envs.num_envs // 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for operation, argument in operations:
                flying = envs._pool.in_flight()
                if operation == "send":
                    for part in range(3):
                        rows = np.arange(part * third, (part + 1) * third)
                        if argument >> part & 1 and not np.isin(rows, flying).any():
                            envs.send(actions(envs, third), rows)
                elif operation == "receive" and flying:
                    observations = envs.recv(PATIENCE_S)[0]
                    if argument is not None:
                        keeper.keep(observations, argument)
                elif operation == "drop":
                    keeper.drop(argument)
                keeper.assert_untouched()
            receive_all(envs)
        keeper.assert_untouched()
        assert envs.stats().batches_reserved <= most

    check()
    slabs = envs.stats().batches_reserved
    for _ in range(20):
        envs.send(actions(envs, envs.num_envs), np.arange(envs.num_envs))
        receive_all(envs)
    assert envs.stats().batches_reserved == slabs, "a slab was lost"


def test_received_arrays_outlive_the_vector_environment(build_any):
    envs = build_any(batch_size=build_any.batch_size)
    receive_all(envs)
    envs.send(actions(envs, envs.num_envs), np.arange(envs.num_envs))
    kept = [envs.recv(PATIENCE_S)[0]]
    envs.send(actions(envs, 1), [envs._pool.in_flight()[0] - 1])  # this row is in flight at `close`
    copies = [array.copy() for array in kept]
    envs.close()
    other = build_any()
    for _ in range(20):
        step_all(other)
    for array, copy in zip(kept, copies, strict=True):
        assert array.tobytes() == copy.tobytes()
        array[:] = 3
