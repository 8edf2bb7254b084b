"""Whatever happens to a worker while its rows are in flight, no call waits forever."""

import os
import signal
import time
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from tests.support.environments import NAMES, SamplingEnv, SleepingEnv, transcripts
from tests.support.faulty import fault
from tests.support.gates import LIMIT_S
from tests.support.in_parts import PATIENCE_S, ready
from tests.support.processes import wait_until_gone
from tests.support.restarts import ROWS

BATCHES = pytest.mark.parametrize("batch_size", [5, pytest.param(2, marks=pytest.mark.slow), 1])


def receive_until_it_fails(envs):
    while True:
        envs.recv(PATIENCE_S)


def send_and_receive(envs, until):
    while time.monotonic() < until:
        rows = envs.recv(PATIENCE_S)[4]["env_index"]
        envs.send([0] * len(rows), rows)


def assert_names_worker(error, pid):
    assert (error.worker, list(error.env_index), error.pid) == (1, [3, 4], pid)
    for part in ("worker 1", "3", "4", str(pid), "SIGKILL"):
        assert part in str(error)


def assert_stays_broken_and_closes(envs, pids):
    for call in (
        lambda: envs.send([0], [0]),
        envs.recv,
        envs.send_reset,
        lambda: envs.step([0] * 5, range(5)),
    ):
        with pytest.raises(cartwheel.WorkerDiedError):
            call()
    started = time.monotonic()
    envs.close()
    assert time.monotonic() - started < LIMIT_S
    assert not wait_until_gone(pids, timeout_s=5)


def assert_death_is_reported(envs, pids):
    """The next receipts name the worker of rows 3 and 4, and the environments stay broken."""
    started = time.monotonic()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        receive_until_it_fails(envs)
    assert time.monotonic() - started < LIMIT_S
    assert_names_worker(failure.value, pids[3])
    assert_stays_broken_and_closes(envs, pids)


@BATCHES
def test_a_worker_that_dies_in_a_row_that_was_sent_is_named(build_processes, batch_size):
    envs = ready(build_processes(ROWS, batch_size=batch_size))
    pids = envs.get_attr("pid")
    envs.send([0, fault("kill"), 0], [1, 4, 0])
    assert_death_is_reported(envs, pids)


@BATCHES
def test_a_worker_that_is_killed_with_rows_in_flight_is_named(build_processes, batch_size):
    envs = ready(build_processes(ROWS, batch_size=batch_size))
    pids = envs.get_attr("pid")
    envs.send([fault("hang"), 0], [3, 4])
    os.kill(pids[3], signal.SIGKILL)
    assert_death_is_reported(envs, pids)


@BATCHES
def test_a_worker_that_was_killed_before_rows_were_sent_is_named(build_processes, batch_size):
    envs = ready(build_processes(ROWS, batch_size=batch_size))
    pids = envs.get_attr("pid")
    os.kill(pids[3], signal.SIGKILL)
    wait_until_gone(pids[3:], timeout_s=5)
    envs.send_reset(options={"env_index": [4]})  # the worker that should get this message is gone
    assert_death_is_reported(envs, pids)


def test_rows_of_other_workers_arrive_although_one_died(build_processes):
    """Earlier results are not lost: they are received before the death is reported."""
    envs = ready(build_processes(ROWS, batch_size=1))
    pids = envs.get_attr("pid")
    envs.send([0, 0], [0, 1])
    while len(envs._pool.in_flight()) == 2:
        envs.recv(PATIENCE_S)
    envs.send([fault("kill")], [4])
    with pytest.raises(cartwheel.WorkerDiedError):
        receive_until_it_fails(envs)
    assert_stays_broken_and_closes(envs, pids)


@pytest.mark.parametrize("batch_size", [2, 1])
def test_a_death_is_reported_although_other_rows_keep_arriving(build_processes, batch_size):
    envs = ready(build_processes(ROWS, batch_size=batch_size))
    pids = envs.get_attr("pid")
    envs.send([0, 0, 0, fault("hang")], [0, 1, 2, 4])
    os.kill(pids[4], signal.SIGKILL)
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        send_and_receive(envs, until=time.monotonic() + PATIENCE_S)
    assert_names_worker(failure.value, pids[4])
    assert_stays_broken_and_closes(envs, pids)


@pytest.mark.parametrize("name", ["hang", "spin", "hold the GIL"])
@BATCHES
def test_a_wait_for_a_hanging_row_ends_at_its_timeout(build_processes, name, batch_size):
    envs = ready(build_processes(ROWS, batch_size=batch_size))
    pids = envs.get_attr("pid")
    envs.send([fault(name)], [3])
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"3"):
        envs.recv(timeout=0.2)
    assert 0.15 < time.monotonic() - started < LIMIT_S
    started = time.monotonic()
    envs.close(timeout=0.2)
    assert time.monotonic() - started < LIMIT_S
    assert not wait_until_gone(pids, timeout_s=5)


def test_a_worker_that_hangs_delays_no_rows_of_other_workers(build_processes):
    envs = ready(build_processes(ROWS, batch_size=1))
    envs.send([fault("hang")], [3])
    for _ in range(20):
        envs.send([0, 0], [0, 2])
        rows = [envs.recv(PATIENCE_S)[4]["env_index"].tolist() for _ in range(2)]
        assert sorted(rows) == [[0], [2]]
    envs.close(timeout=0)


@BATCHES
def test_closing_with_rows_in_flight_is_bounded_and_quiet(build_everywhere, batch_size):
    envs = ready(build_everywhere([SleepingEnv] * 5, batch_size=batch_size))
    envs.send([0.01] * 4, [4, 2, 0, 1])
    started = time.monotonic()
    envs.close()
    assert time.monotonic() - started < LIMIT_S


def test_a_collected_object_with_rows_in_flight_leaves_nothing():
    envs = cartwheel.VectorEnv(ROWS, executor="process", num_workers=2, batch_size=1)
    pids = envs.get_attr("pid")
    ready(envs)
    envs.send([0, 0, 0], [0, 1, 4])
    kept = envs.recv(PATIENCE_S)[0]
    copy = kept.copy()
    del envs
    assert not wait_until_gone(pids, timeout_s=10)
    assert (kept == copy).all()


class WordyEnv(SamplingEnv):
    """Its infos and its actions are larger than the buffer of a socket."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, info | {"echo": "e" * 3_000_000}


def test_large_messages_in_both_directions_at_once_do_not_block(build_processes):
    """The worker sends the infos of one row while the caller sends it the action of another."""
    env_fn = partial(WordyEnv, Box(-1, 1, (1,)), action_space=NAMES, length=99)
    envs = ready(build_processes([env_fn] * 4, batch_size=1, num_workers=1))
    for _ in range(3):
        for row in range(4):
            envs.send(("x" * 3_000_000,), [row])
        rows = []
        for _ in range(4):
            infos = envs.recv(PATIENCE_S)[4]
            rows += infos["env_index"].tolist()
            assert len(infos["echo"][0]) == 3_000_000
        assert sorted(rows) == [0, 1, 2, 3]


def test_many_sends_before_a_receive_are_kept(build_everywhere):
    envs = ready(build_everywhere(transcripts(*[99] * 40), batch_size=3))
    for row in np.random.default_rng(0).permutation(40):
        envs.send([row % 10], [row])
    rows = []
    while envs._pool.in_flight():
        result = envs.recv(PATIENCE_S)
        rows += result[4]["env_index"].tolist()
        assert result[1].tolist() == [row % 10 for row in result[4]["env_index"]]
    assert sorted(rows) == list(range(40))
