"""An array that a call returned belongs to the caller: to keep, to write to, even after `close`."""

import gc
import itertools
import warnings
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv

from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import (
    BufferReusingEnv,
    LargeNestedEnv,
    NestedEnv,
    samplers,
    transcripts,
)
from tests.support.executors import EVERY_EXECUTOR, NATIVE
from tests.support.oracle import assert_same_reset, with_oracle
from tests.support.repetitions import times

SIZES = pytest.mark.parametrize("env_fn", [NestedEnv, LargeNestedEnv], ids=["small", "large"])
COPIES = pytest.mark.parametrize("copy", [True, False], ids=["copy", "no copy"])
IMAGE = Box(0, 255, (64, 64, 3), np.uint8)
#: Native rows: three whose batches are copied, with and without infos, of one and of two arrays;
#: and one whose batches are views.
NATIVE_ROWS = [
    *[Case(env_id) for env_id in ("MountainCarContinuous-v0", "Taxi-v4", "Blackjack-v1")],
    Case("Null-v0", {"shape": (70, 70), "episode_steps": 5}),
]
ROWS = pytest.mark.parametrize(
    ("build_anywhere", "env_fn"),
    [(executor, env_fn) for executor in EVERY_EXECUTOR for env_fn in (NestedEnv, LargeNestedEnv)]
    + [(NATIVE, case) for case in NATIVE_ROWS],
    indirect=["build_anywhere"],
    ids=lambda value: getattr(value, "__name__", str(value)),
)


def leaves(observations):
    """The arrays of nested observations."""
    if isinstance(observations, dict):
        observations = tuple(observations.values())
    if isinstance(observations, tuple):
        return [leaf for member in observations for leaf in leaves(member)]
    return [observations]


def arrays(result):
    """Every array of a result except those of its infos."""
    return [*leaves(result[0]), *(leaf for leaf in result[1:] if isinstance(leaf, np.ndarray))]


def overwrite(observations):
    for leaf in leaves(observations):
        leaf[...] = 77


@COPIES
@ROWS
@pytest.mark.filterwarnings("ignore:too many batches are kept:RuntimeWarning")
def test_kept_results_never_change(build_anywhere, env_fn, copy):
    for max_batches in times((None, 2), with_full=(None, 2, 3)):
        envs = build_anywhere(
            [env_fn] * 3, autoreset_mode="SameStep", copy=copy, max_batches=max_batches
        )
        envs.action_space.seed(1)
        kept, copies = [], []
        for step in range(times(60, with_full=120)):
            if step % 50 == 0:
                kept.append(envs.reset(seed=step))
            elif step % 20 == 19:
                kept.append(envs.reset(options={"reset_mask": np.array([True, False, True])}))
            else:
                kept.append(envs.step(envs.action_space.sample()))
            copies.append(deepcopy(kept[-1]))
        assert_identical(kept, copies)
        envs.close()
        assert_identical(kept, copies)
        del envs
        gc.collect()
        assert_identical(kept, copies)


@COPIES
@SIZES
def test_kept_results_never_share_memory(build, env_fn, copy):
    envs = build([env_fn] * 3, copy=copy)
    kept = arrays(envs.reset(seed=1))
    for _ in range(20):
        kept += arrays(envs.step([0, 1, 2]))
    ranges = sorted(np.lib.array_utils.byte_bounds(array) for array in kept)
    for (_start, end), (start, _end) in itertools.pairwise(ranges):
        assert end <= start


@COPIES
@ROWS
def test_results_are_writable_and_writing_changes_no_later_result(build_anywhere, env_fn, copy):
    envs, oracle = with_oracle(build_anywhere, env_fn, 3, copy=copy)
    envs.action_space.seed(1)
    for _ in range(40):
        actions = envs.action_space.sample()
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        for array in arrays(result):
            assert array.flags.writeable
            array[...] = 1
    assert_same_reset(envs, oracle, options={"reset_mask": np.array([True, False, False])})


@COPIES
@pytest.mark.parametrize("space", [Box(-1, 1, (4,)), IMAGE], ids=["small", "large"])
def test_rows_outside_of_a_mask_show_their_own_values_not_the_callers(
    build_everywhere, space, copy
):
    envs = build_everywhere(samplers(space, 3), copy=copy)
    oracle = SyncVectorEnv(samplers(space, 3))
    assert_identical(envs.reset(seed=2)[0], oracle.reset(seed=2)[0])
    for _ in range(3):
        observations, expected = envs.step([0] * 3)[0], oracle.step([0] * 3)[0]
        assert_identical(observations, expected)
        overwrite(observations)
        for _ in range(2):
            masks = [{"reset_mask": np.array([False, True, False])} for _ in range(2)]
            observations, expected = envs.reset(options=masks[0]), oracle.reset(options=masks[1])
            assert_identical(observations, expected)
            overwrite(observations[0])
    oracle.close()


@COPIES
def test_frozen_rows_repeat_their_own_values_not_the_callers(build_everywhere, copy):
    envs = build_everywhere(
        transcripts(1, 9), autoreset_mode="Disabled", on_done="freeze", copy=copy
    )
    envs.reset()
    for t in range(1, 9):
        observations, *_ = envs.step([1, 1])
        assert observations.tolist() == [[1], [t]]
        observations[:] = 77


@COPIES
def test_an_environment_that_reuses_its_buffers_does_not_change_results(build, copy):
    envs = build([partial(BufferReusingEnv, 100)] * 2, copy=copy)
    kept = [envs.reset()[0]] + [envs.step([0, 0])[0] for _ in range(9)]
    for t, observations in enumerate(kept):
        assert_identical(
            observations,
            {
                "t": np.full((2, 1), t, np.float32),
                "nested": (np.full((2, 2, 2), t, np.uint8), np.full(2, t, np.int64)),
            },
        )


@COPIES
@SIZES
def test_a_row_or_a_leaf_kept_alone_never_changes(build, env_fn, copy):
    envs = build(samplers(env_fn.observation_space, 3, length=1000), copy=copy)
    envs.reset(seed=1)
    kept, copies = [], []
    for step in range(100):
        observations = envs.step([0, 0, 0])[0]
        leaf = leaves(observations)[step % 5]
        view = (leaf[1], leaf[::2], leaf.T, leaf.reshape(-1), leaf.view(np.uint8))[step // 5 % 5]
        kept.append(view)
        copies.append(view.copy())
        del observations, leaf, view
    assert_identical(kept, copies)


@pytest.mark.parametrize("max_batches", [2, 3, 10])
def test_results_are_copies_after_one_warning_when_no_slab_is_left(build_everywhere, max_batches):
    envs = build_everywhere(samplers(IMAGE, 2, length=10**6), max_batches=max_batches)
    oracle = SyncVectorEnv(samplers(IMAGE, 2, length=10**6))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = [envs.reset(seed=1)[0]] + [envs.step([0, 0])[0] for _ in range(30)]
    assert len(caught) <= 1, [str(warning.message) for warning in caught]
    for warning in caught:
        assert str(warning.message).endswith(f"or give max_batches={2 * max_batches}")
    assert_identical(kept[0], oracle.reset(seed=1)[0])
    for observations in kept[1:]:
        assert_identical(observations, oracle.step([0, 0])[0])
    del kept, observations
    for _ in range(10):
        assert_identical(envs.step([0, 0])[0], oracle.step([0, 0])[0])
    oracle.close()
