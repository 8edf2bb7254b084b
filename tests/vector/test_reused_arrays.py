"""A pool reuses the arrays of an earlier batch, and only those without other references."""

import gc
import weakref
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box

from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, samplers
from tests.support.executors import INLINE, NATIVE, PROCESS
from tests.support.held_arrays import CHANGES, HOLDERS, KEPT, NEEDS_THE_GIL, assert_held, leaves
from tests.support.in_parts import PATIENCE_S
from tests.support.oracle import assert_same_reset, with_oracle
from tests.support.repetitions import times

ROWS = pytest.mark.parametrize(
    ("executor", "env_fn"),
    [(INLINE, NestedEnv), (PROCESS, NestedEnv), (NATIVE, POLE)],
    ids=["inline", "process", "native"],
)


def arrays(result):
    """The arrays of a result without those of its infos."""
    return leaves(result[:-1])


@NEEDS_THE_GIL
@ROWS
def test_a_loop_that_keeps_the_last_batch_gets_few_arrays(executor, env_fn):
    envs = executor([env_fn] * 3)
    observations, _ = envs.reset(seed=1)
    seen = [set() for _ in range(len(arrays(envs.step(np.zeros(3, np.int64)))))]
    for _ in range(20):
        observations, rewards, terminations, truncations, _ = envs.step(np.zeros(3, np.int64))
        shown = arrays((observations, rewards, terminations, truncations, {}))
        for ids, array in zip(seen, shown, strict=True):
            ids.add(id(array))
    envs.close()
    assert all(2 <= len(ids) <= KEPT for ids in seen), seen


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(("executor", "env_fn"), [(INLINE, NestedEnv), (NATIVE, POLE)], ids=str)
def test_what_is_held_in_any_way_never_changes(executor, env_fn, holder):
    hold, read = HOLDERS[holder]
    envs = executor([env_fn] * 3, autoreset_mode="SameStep")
    envs.action_space.seed(1)
    envs.reset(seed=1)
    kept = []
    for number in range(len(arrays(envs.step(envs.action_space.sample())))):
        array = arrays(envs.step(envs.action_space.sample()))[number]
        kept.append((hold(array), np.array(read(hold(array)))))
        del array
    for _ in range(4 * KEPT):
        envs.step(envs.action_space.sample())
    for held, expected in kept:
        assert np.array_equal(read(held), expected)
    envs.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy, about setting a shape
@pytest.mark.parametrize("change", CHANGES)
@ROWS
def test_arrays_that_were_changed_do_not_come_again(executor, env_fn, change):
    envs, oracle = with_oracle(executor, env_fn, 3)
    oracle.action_space.seed(1)
    for step in range(30):
        actions = oracle.action_space.sample()
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        shown = arrays(result)
        for array in shown:
            assert array.flags.writeable
            assert array.flags.aligned
            assert array.strides == np.empty_like(array).strides
        for array in shown[step % 3 :: 3]:
            CHANGES[change](array)
        del result, shown, array
    envs.close()
    oracle.close()


@ROWS
def test_a_weak_reference_never_finds_another_batch(executor, env_fn):
    envs = executor([env_fn] * 3)
    envs.action_space.seed(1)
    envs.reset(seed=1)
    ends = []
    for number in range(4 * KEPT):
        shown = arrays(envs.step(envs.action_space.sample()))
        references = [weakref.ref(array) for array in shown]
        copies = deepcopy(shown)
        if number % 2:  # a block is free, or all are in use
            del shown
        weakref.finalize(references[0]() if number % 2 else shown[0], ends.append, number)
        for _ in range(KEPT):
            envs.step(envs.action_space.sample())
            for reference, copy in zip(references, copies, strict=True):
                found = reference()
                assert found is None or np.array_equal(found, copy)
                del found
        shown = None
        for _ in range(KEPT + 1):
            envs.step(envs.action_space.sample())
        assert not any(reference() is not None for reference in references)
        assert ends == list(range(number + 1))
    envs.close()


def holding_some(step, random, kept):
    """Keeps some arrays of a result, forgets others, and checks all."""
    result = step()
    copies = deepcopy(result)
    for array in arrays(result):
        if random.random() < 0.2:
            held = (array, array[..., :1], array.T, memoryview(array))[random.integers(4)]
            kept.append((held, np.array(held)))
    while kept and random.random() < 0.6:
        kept.pop(random.integers(len(kept)))
    assert_held(kept[-10:])
    return copies


@pytest.mark.parametrize(
    ("mode", "keywords"),
    [("NextStep", {}), ("SameStep", {}), ("SameStep", {"final_obs": "dense"}), ("Disabled", {})],
    ids=["next-step", "same-step", "dense", "disabled"],
)
@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
def test_results_held_at_random_equal_those_of_a_program_that_holds_all(executor, mode, keywords):
    envs, oracle = (executor([NestedEnv] * 3, autoreset_mode=mode, **keywords) for _ in range(2))
    random, kept, held, over = np.random.default_rng(0), [], [], np.ones(3, np.bool_)
    envs.action_space.seed(1)
    for number in range(times(60, with_full=500)):
        mask = np.ones(3, np.bool_) if number % 15 == 0 else over
        resets = number % 15 == 0 or (mode == "Disabled" and over.any())
        actions = envs.action_space.sample()

        def call(pool, seed=number, resets=resets, mask=mask, actions=actions):
            if resets:
                return pool.reset(seed=seed, options={"reset_mask": mask.copy()})
            return pool.step(actions)

        shown = holding_some(partial(call, envs), random, kept)
        held.append(call(oracle))
        assert_identical(shown, held[-1])
        over = shown[2] | shown[3] if len(shown) == 5 else np.zeros(3, np.bool_)
    assert_held(kept)
    envs.close()
    oracle.close()


@pytest.mark.parametrize("executor", [PROCESS, NATIVE], ids=str)
def test_received_batches_of_other_numbers_of_rows_are_their_own(executor):
    env_fn = POLE if executor is NATIVE else samplers(Box(-1, 1, (4,), np.float32), 1)[0]
    envs, oracle = (executor([env_fn] * 5) for _ in range(2))
    random, kept = np.random.default_rng(0), []
    for pool in (envs, oracle):
        pool.reset(seed=1)
    held = []
    for _ in range(times(60, with_full=500)):
        rows = np.sort(random.permutation(5)[: random.integers(1, 6)])

        def step(pool, rows=rows):
            pool.send(np.zeros(len(rows), np.int64), rows)
            return pool.recv(PATIENCE_S)

        shown = holding_some(partial(step, envs), random, kept)
        held.append(step(oracle))
        assert_identical(shown, held[-1])
    assert_held(kept)
    envs.close()
    oracle.close()


@ROWS
def test_arrays_outlive_the_pool_that_kept_them(executor, env_fn):
    envs = executor([env_fn] * 3)
    envs.reset(seed=1)
    for _ in range(2 * KEPT):  # so that the last ones came before
        shown = arrays(envs.step(np.zeros(3, np.int64)))
    copies = deepcopy(shown)
    pool = weakref.ref(envs)
    envs.close()
    del envs
    gc.collect()
    assert pool() is None
    other = executor([env_fn] * 3)
    other.reset(seed=2)
    for _ in range(2 * KEPT):
        other.step(np.ones(3, np.int64))
    other.close()
    assert_identical(shown, copies)


@ROWS
def test_masked_resets_write_no_batch_that_was_given(executor, env_fn):
    envs, oracle = with_oracle(executor, env_fn, 3)
    kept, copies = [], []
    for number in range(6):
        mask = np.arange(3) % 2 == number % 2
        result = assert_same_reset(envs, oracle, options={"reset_mask": mask})
        kept.append(leaves(result[0])[number % 2 :: 2])
        copies.append(deepcopy(kept[-1]))
        del result
    assert_identical(kept, copies)
    envs.close()
    oracle.close()
