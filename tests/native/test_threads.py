"""Native environments step on their own threads, and wait, time out and close like others."""

import gc
import subprocess
import sys
import threading
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)

import cartwheel
from cartwheel import _cartwheel
from tests.support.comparison import assert_identical, assert_names_row, text_of
from tests.support.oracle import assert_same_reset, assert_same_steps, outcome
from tests.support.processes import left_behind, native_threads, residue
from tests.support.threads import in_thread

pytestmark = pytest.mark.usefixtures("spinning")


@pytest.mark.parametrize(
    "state", [[np.inf] * 4, [1e17, 0, 0, 0], [0, 0, 1e5, -1e5]], ids=["infinite", "angle", "speed"]
)
def test_the_error_names_the_row_that_failed_and_the_others_are_stepped(build_pair, state):
    envs, _ = build_pair("Acrobot-v1", 4, num_workers=2)
    twin, _ = build_pair("Acrobot-v1", 4, num_workers=2)
    states = list(envs.get_attr("state"))
    states[2] = np.array(state, np.float64)
    envs.set_attr("state", states)
    actions = np.array([0, 1, 2, 0])
    with pytest.raises(cartwheel.EnvPanicError, match="overflowed") as panic:
        envs.step(actions)
    assert_names_row(panic.value, 2)
    observations = twin.step(actions)[0]
    others = [0, 1, 3]
    assert_identical(
        np.array(envs.get_attr("state"))[others], np.array(twin.get_attr("state"))[others]
    )
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="2") as refusal:
            envs.step(actions)
        assert "reset()" in text_of(refusal.value)
    result = envs.reset(options={"reset_mask": np.array([False, False, True, False])})
    assert_identical(result[0][others], observations[others])
    assert_identical(envs.step(actions)[0][others], twin.step(actions)[0][others])


def test_a_timeout_ends_the_wait_and_loses_nothing():
    """In a first step only the caller works; each zero-timeout wait steps one shard."""
    ends = [end for _, end in _cartwheel.fine_shards(160, 2, 1)]
    envs, twin = (cartwheel.NativeVectorEnv("Taxi-v4", 160, num_workers=2) for _ in "ab")
    for each in (envs, twin):
        each.reset(seed=1)
    actions = np.arange(160) % 6
    envs.step_async(actions)
    late = 0
    while (result := outcome(partial(envs.step_wait, timeout=0)))[1] is not None:
        assert isinstance(result[1], TimeoutError)
        rows = list(range(ends[late], 160))
        assert result[1].env_index == rows
        assert f"after 0 second(s). Rows {str(rows[:16])[:-1]}" in str(result[1])
        late += 1
    assert late == len(ends) - 1 == 11
    assert_identical(result[0], twin.step(actions))
    envs.close()
    twin.close()


def test_a_reset_drops_a_step_that_timed_out():
    envs, twin = (cartwheel.NativeVectorEnv("Acrobot-v1", 160, num_workers=2) for _ in "ab")
    envs.reset(seed=1)
    actions = np.arange(160) % 3
    envs.step_async(actions)
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0)
    assert_identical(envs.reset(seed=2), twin.reset(seed=2))
    assert_identical(envs.step(actions), twin.step(actions))
    envs.close()
    twin.close()


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_rows_that_were_never_reset_are_named_and_no_row_is_stepped(build_pair, executor):
    envs, oracle = build_pair("Pendulum-v1", 3, seed=None, executor=executor)
    actions = np.ones((3, 1), np.float32)
    mask = np.array([False, True, False])
    envs.reset(seed=1, options={"reset_mask": mask})
    state = envs.get_attr("state")[1]
    for step in (envs.step, envs.step_async):
        with pytest.raises(ResetNeeded) as refusal:
            step(actions)
        assert "rows [0, 2] were never reset" in text_of(refusal.value)
        assert_identical(envs.get_attr("state")[1], state)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    oracle.reset(seed=1)
    assert_same_reset(envs, oracle, seed=1, options={"reset_mask": ~mask})
    assert_same_steps(envs, oracle, 5)


def test_a_long_list_of_rows_is_shortened():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 20)
    with pytest.raises(ResetNeeded) as refusal:
        envs.step(np.zeros(20, np.int64))
    assert "14, 15] and 4 more were never reset" in text_of(refusal.value)
    envs.close()


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_calls_from_a_second_thread_are_refused(executor):
    """Steps release the GIL, so the second thread can call in the meantime."""
    rows = 8_000
    envs, twin = (cartwheel.NativeVectorEnv("Acrobot-v1", rows, executor=executor) for _ in "ab")
    actions = np.arange(rows) % 3
    envs.reset(seed=1)
    twin.reset(seed=1)
    done, refusals = threading.Event(), []

    def intrude():
        while not done.wait(0.001):
            refusals.append(type(outcome(lambda: envs.get_attr("dt"))[1]))
            refusals.append(type(outcome(envs.step_wait)[1]))

    intruder = threading.Thread(target=intrude)
    intruder.start()
    results = []
    while len(results) < 10 or AlreadyPendingCallError not in refusals:
        result, refusal = outcome(lambda: envs.step(actions))
        if refusal is None:
            results.append(result[0])
        else:  # the intruder's call was first
            assert isinstance(refusal, AlreadyPendingCallError)
    done.set()
    intruder.join()
    assert set(refusals) <= {AlreadyPendingCallError, NoAsyncCallError, type(None)}
    for result in results:
        assert_identical(result, twin.step(actions)[0])
    envs.close()
    twin.close()


def test_closing_ends_the_steps_of_another_thread():
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 5_000, num_workers=2)
    envs.reset(seed=1)
    started = threading.Event()

    def step():
        while True:
            envs.step(np.zeros(5_000, np.int64))
            started.set()

    wait = in_thread(step)
    assert started.wait(30)
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        wait()


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_there_are_num_workers_threads_and_none_after_close(num_workers):
    for _ in range(5):
        before, threads = residue(), native_threads()
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, num_workers=num_workers)
        assert envs.num_workers == num_workers
        assert len(native_threads() - threads) == num_workers - 1
        envs.reset(seed=1)
        envs.step(np.zeros(64, np.int64))
        envs.close()
        assert not left_behind(before)


@pytest.mark.parametrize("num_envs", [1, 63, 127, 128, 4096])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4"])
def test_by_default_every_thread_has_at_least_one_block(env_id, num_envs):
    envs = cartwheel.NativeVectorEnv(env_id, num_envs)
    whole_blocks = num_envs // _cartwheel.block_rows(env_id)
    assert envs.num_workers == min(max(whole_blocks, 1), _cartwheel.usable_cpus())
    envs.close()


def test_the_inline_executor_has_no_threads():
    before = native_threads()
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 64, executor="inline", num_workers=4)
    envs.reset(seed=1)
    envs.step(np.zeros(64, np.int64))
    assert (envs.num_workers, envs.executor) == (1, "inline")
    assert native_threads() <= before
    envs.close()


def test_a_deleted_vector_environment_ends_its_threads():
    before = residue()
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 64, num_workers=4)
    kept, _ = envs.reset(seed=1)
    copy = kept.copy()
    envs.step_async(np.zeros(64, np.int64))
    del envs
    gc.collect()
    assert not left_behind(before)
    assert_identical(kept, copy)


def test_the_environment_may_say_that_there_are_fewer_processors():
    most = {"1": 1, "2": 2, "100000": 100_000, "0": 1}
    program = f"""
import os, cartwheel
from cartwheel._cartwheel import usable_cpus
for text in {list(most)}:
    child = os.fork()  # processors are counted once in a process
    if child == 0:
        os.environ["CARTWHEEL_CPUS"] = text
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 4096)
        print(usable_cpus(), envs.num_workers, flush=True)
        envs.close()
        os._exit(0)
    os.waitpid(child, 0)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    usable = _cartwheel.usable_cpus()
    expected = [min(usable, limit or 100_000) for limit in most.values()]
    assert ended.stdout.splitlines() == [f"{number} {number}" for number in expected]
