"""``recv(min_rows=, max_rows=)`` and ``recv_order``: rows in parts give Gymnasium's results."""

import contextlib
from copy import deepcopy
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.wrappers import TimeLimit

from cartwheel import WorkerTimeoutError
from cartwheel.wrappers import TransformReward
from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, NestedEnv, TranscriptEnv
from tests.support.executors import Executor, Native
from tests.support.faulty import FaultyEnv
from tests.support.in_parts import PATIENCE_S, Oracle, Sender, begin, index, play_in_parts
from tests.support.oracle import MODE
from tests.support.restarts import end

REMEDY = "wait again, reset or close."
ORDER = pytest.mark.parametrize("order", ["sent", "done"])


def limited():
    return TimeLimit(NestedEnv(), 5)


def one_step():
    """All rows are over at once."""
    return TranscriptEnv(1)


CART_POLE = Case("CartPole-v1", {"max_episode_steps": 5})
TAXI = Case("Taxi-v4", {"max_episode_steps": 6})
#: An environment, an executor, the number of environments, the batch size.
SETTINGS = [
    (limited, Executor("inline"), 1, 1),
    (limited, Executor("inline"), 7, 3),
    (one_step, Executor("inline"), 7, 7),
    (limited, Executor("thread", {"num_workers": 7}), 7, 7),
    (one_step, Executor("thread", {"num_workers": 2}), 7, 3),
    (limited, Executor("process", {"num_workers": 2}), 7, 3),
    (one_step, Executor("process", {"num_workers": 7}), 9, 9),
    (CART_POLE, Native("native", {"num_workers": 1}), 1, 1),
    (TAXI, Native("native", {"num_workers": 2}), 7, 7),
    (CART_POLE, Native("native", {"num_workers": 7}), 20, 8),
]


class Parts(Sender):
    """Receives parts of random sizes, and checks their sizes and their order."""

    def __init__(self, envs, oracle):
        super().__init__(envs, oracle)
        self.ordered = envs.recv_order == "sent"
        self.random, self.place = np.random.default_rng(1), 0  # the place where a part begins

    def receive(self):
        size, sent = self.envs.batch_size, len(self.sent)
        most = int(self.random.integers(1, size + 1))
        least = int(self.random.integers(1, most + 1))
        result = self.envs.recv(PATIENCE_S, min_rows=least, max_rows=most)
        count, left = len(index(result)), size - self.place
        assert min(least, sent, left) <= count <= min(most, left)
        self.place = 0 if count == sent else (self.place + count) % size
        return self.compared(result)


@MODE
@ORDER
@pytest.mark.parametrize(
    ("env_fn", "executor", "num_envs", "batch_size"),
    SETTINGS,
    ids=[f"{executor}-{num_envs}-{size}" for _, executor, num_envs, size in SETTINGS],
)
def test_every_part_equals_that_of_sync_vector_env(
    env_fn, executor, num_envs, batch_size, order, mode, closes
):
    env_fns = [env_fn] * num_envs
    envs = closes(executor(env_fns, autoreset_mode=mode, batch_size=batch_size))
    oracle = closes(Oracle(env_fns, mode))
    envs.recv_order = order
    received = play_in_parts(envs, oracle, results=10, sender_class=Parts)
    assert sum((result[2] | result[3]).sum() for result in received) >= num_envs / 2


def test_a_send_is_received_alone_after_two_sends(build_anywhere):
    envs = build_anywhere([POLE] * 6)
    begin(envs)
    envs.send([0, 1, 0], [5, 0, 3])
    envs.send([0, 1, 0], [2, 4, 1])
    assert index(envs.recv(PATIENCE_S, min_rows=3, max_rows=3)) == [5, 0, 3]
    assert envs.in_flight == [1, 2, 4]
    assert index(envs.recv(PATIENCE_S, min_rows=3, max_rows=3)) == [2, 4, 1]


def test_all_rows_sent_at_once_are_one_batch(build_any):
    envs = build_any([POLE] * 4)
    begin(envs)
    envs.send([0, 1, 0, 1])
    assert index(envs.recv(PATIENCE_S, min_rows=1, max_rows=2)) == [0, 1, 2, 3]


def test_rows_are_sent_again_while_the_rest_of_their_batch_is_not_received(build_anywhere):
    envs = build_anywhere([POLE] * 3)
    begin(envs)
    envs.send([0, 1, 0], [0, 1, 2])
    expected = [0, 1, 2]
    for _ in range(20):
        rows = index(envs.recv(PATIENCE_S, min_rows=1, max_rows=1))
        assert rows == [expected.pop(0)]
        envs.send([1], rows)
        expected += rows


@ORDER
def test_after_the_timeout_a_receipt_has_what_is_done(build_workers, gates, order):
    envs = build_workers(gates.env_fns(4))
    envs.recv_order = order
    envs.reset()
    envs.send([0, 0, 0, 1], [0, 1, 2, 3])
    came = []
    while len(came) < 3:  # how many come in time depends on the machine
        with contextlib.suppress(TimeoutError):
            came += index(envs.recv(0.01, min_rows=4))
    assert sorted(came) == [0, 1, 2]
    for bounds in ({}, {"min_rows": 2}, {"max_rows": 1}, {"min_rows": 1, "max_rows": 2}):
        with pytest.raises(TimeoutError, match=r"after 0\.01 second"):
            envs.recv(0.01, **bounds)
    assert envs.in_flight == [3]
    gates.open(1)
    assert index(envs.recv(PATIENCE_S, min_rows=4)) == [3]


class LateEnv(TranscriptEnv):
    """Raises, with the action 2, what a ``multiprocessing.Pool`` raises that it waits for."""

    def step(self, action):
        if action == 2:
            raise TimeoutError("the simulator is late")
        return super().step(action)


@ORDER
def test_the_timeout_of_an_environment_is_not_that_of_the_receipt(build, order):
    envs = build([partial(LateEnv, 9)] * 3)
    envs.recv_order = order
    envs.reset()
    envs.send([2, 0, 0], [0, 1, 2])
    with pytest.raises(TimeoutError, match="the simulator is late"):
        envs.recv(PATIENCE_S, min_rows=3)
    assert envs.in_flight == []


def test_in_the_order_of_sends_rows_wait_for_an_earlier_one(build_workers, gates):
    envs = build_workers(gates.env_fns(4))
    envs.reset()
    envs.send([1], [0])
    gates.await_arrival(1)
    envs.send([0, 0], [2, 3])
    with pytest.raises(TimeoutError):
        envs.recv(0.05, min_rows=1)
    assert envs.in_flight == [0, 2, 3]
    gates.open(1)
    assert index(envs.recv(PATIENCE_S, min_rows=3)) == [0, 2, 3]


def rows_owed(envs):
    with pytest.raises(WorkerTimeoutError) as late:
        envs.recv(0.01)
    rows = late.value.env_index
    assert str(late.value).endswith(f"Rows {rows} have not answered; nothing is lost: {REMEDY}")
    assert late.value.workers == rows  # each worker has one row
    return rows


@pytest.mark.parametrize(("order", "batch_size"), [("sent", 4), ("sent", 2), ("done", 4)])
def test_a_timeout_names_no_row_that_has_answered(build_workers, gates, order, batch_size):
    envs = build_workers(gates.env_fns(4), num_workers=4, batch_size=batch_size)
    envs.recv_order = order
    envs.send_reset(options={"env_index": [0, 2, 3]})
    for _ in range(1 if batch_size == 4 else 2):
        envs.recv(PATIENCE_S)
    envs.send([1, 0, 0], [0, 2, 3])
    while rows_owed(envs) != [0]:  # until the other two are done
        assert envs.in_flight == [0, 2, 3]
    if order == "done":  # a place that was handed out says nothing of a row that was sent again
        (row,) = index(envs.recv(PATIENCE_S, min_rows=1, max_rows=1))
        envs.send([2], [row])
        gates.await_arrival(2)
        assert rows_owed(envs) == sorted([0, row])
    gates.open(1, 2)
    assert 0 in index(envs.recv(PATIENCE_S))


class SlowResets(TranscriptEnv):
    """A step whose action is not 0 ends the episode, and the reset after it waits at a gate."""

    def __init__(self, gates):
        super().__init__(1000)
        self.gates, self.number = gates, 0

    def reset(self, *, seed=None, options=None):
        self.gates.stand_at(self.number)
        self.number = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.number = int(action)
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, bool(action), truncated, info


@pytest.mark.parametrize("batch_size", [2, 4])
def test_in_same_step_a_slow_reset_holds_back_no_row_of_another_worker(
    build_workers, batch_size, gates
):
    envs = build_workers(
        [partial(SlowResets, gates)] * 4, autoreset_mode="same_step", batch_size=batch_size
    )
    envs.recv_order = "done"
    begin(envs)
    envs.send([1], [0])
    gates.await_arrival(1)
    for step in range(1, 5):
        envs.send([0, 0], [2, 3])
        came = {}
        while len(came) < 2:
            result = envs.recv(PATIENCE_S, min_rows=1)
            came.update(zip(index(result), result[0][:, 0], strict=True))
        assert came == {2: step, 3: step}
    assert envs.in_flight == [0]
    gates.open(1)
    observations, _, terminations, _, infos = envs.recv(PATIENCE_S)
    assert terminations.tolist() == [True]
    assert observations.tolist() == [[0]]
    assert infos["final_obs"][0].tolist() == [1]


def test_bounds_that_are_wrong_are_refused_and_nothing_is_lost(build_any):
    envs = build_any([POLE] * 4, batch_size=3)
    begin(envs)
    envs.send([0, 1], [2, 1])
    for name in ("min_rows", "max_rows"):
        for value in (0, -1, 4, 1.5):
            with pytest.raises(ValueError, match=name):
                envs.recv(PATIENCE_S, **{name: value})
    with pytest.raises(ValueError, match="min_rows"):
        envs.recv(PATIENCE_S, min_rows=2, max_rows=1)
    assert envs.in_flight == [1, 2]
    assert sorted(index(envs.recv(PATIENCE_S, min_rows=3))) == [1, 2]
    with pytest.raises(NoAsyncCallError):
        envs.recv(PATIENCE_S, min_rows=1)


@ORDER
def test_a_step_and_a_reset_of_rows_return_them_in_the_order_in_which_they_are_named(
    build_workers, gates, order
):
    """Also where other rows are done first. What is sent later comes in the order that was set."""
    envs = build_workers(gates.env_fns(4))
    envs.recv_order = order
    envs.reset()
    with gates.opened_soon(1):
        result = envs.step([1, 0, 0], [3, 1, 0])
    assert index(result) == [3, 1, 0]
    assert result[1].tolist() == [1, 0, 0]
    envs.step_async([2, 0], [3, 0])
    with gates.opened_soon(2):
        assert index(envs.step_wait(PATIENCE_S)) == [3, 0]
    with gates.opened_soon(3):
        result = envs.reset(options={"env_index": [2, 3, 0, 1], "gate": 3})
    assert index(result) == [2, 3, 0, 1]
    assert envs.recv_order == order
    envs.send([4, 0], [3, 0])
    if order == "done":
        assert index(envs.recv(PATIENCE_S, min_rows=1)) == [0]
    gates.open(4)
    assert index(envs.recv(PATIENCE_S)) == ([3] if order == "done" else [3, 0])


def test_the_order_is_one_of_two_and_is_set_while_nothing_flies(build_any):
    envs = build_any([POLE] * 4, batch_size=3)
    assert envs.recv_order == "done"
    begin(envs)
    with pytest.raises(ValueError, match="recv_order"):
        envs.recv_order = "fifo"
    envs.send([0], [2])
    with pytest.raises(AlreadyPendingCallError):
        envs.recv_order = "sent"
    assert envs.recv_order == "done"
    envs.recv(PATIENCE_S)
    envs.recv_order = "sent"
    envs.send([0, 0], [2, 0])
    assert index(envs.recv(PATIENCE_S)) == [2, 0]
    assert build_any([POLE] * 4).recv_order == "sent"


def test_after_a_wait_that_timed_out_the_order_is_set_for_what_is_sent_later(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    envs.recv_order = "done"
    envs.send([1, 0], [0, 1])
    assert index(envs.recv(PATIENCE_S, min_rows=1)) == [1]
    with pytest.raises(WorkerTimeoutError):
        envs.recv(0.01)
    envs.recv_order = "sent"
    envs.send([0], [1])  # joins row 0, whose order is the one of before
    assert index(envs.recv(PATIENCE_S, min_rows=1)) == [1]
    gates.open(1)
    assert index(envs.recv(PATIENCE_S)) == [0]
    envs.send([2, 0], [0, 1])
    with gates.opened_soon(2):
        assert index(envs.recv(PATIENCE_S, min_rows=2)) == [0, 1]


@ORDER
@pytest.mark.parametrize(
    ("env_fn", "executor"),
    [
        (LargeNestedEnv, Executor("inline")),
        (LargeNestedEnv, Executor("thread", {"num_workers": 2})),
        (LargeNestedEnv, Executor("process", {"num_workers": 2})),
        (Case("Null-v0", {"shape": (80, 80, 3)}), Native("native", {"num_workers": 2})),
        (POLE, Native("native", {"num_workers": 2})),
    ],
    ids=str,
)
def test_a_part_never_changes_while_a_view_of_it_lives(env_fn, executor, order):
    envs = executor([env_fn] * 6, batch_size=4)
    envs.recv_order = order
    envs.send_reset(seed=1)
    kept, random = [], np.random.default_rng(1)
    for _ in range(60):
        result = envs.recv(PATIENCE_S, min_rows=1, max_rows=int(random.integers(1, 4)))
        kept.append((result, deepcopy(result)))
        if len(kept) > 5:
            kept.pop(int(random.integers(len(kept))))
        envs.send([0] * len(index(result)), index(result))
        for view, copy in kept:
            assert_identical(view, copy)
    envs.close()
    for view, copy in kept:
        assert_identical(view, copy)


def test_wrappers_receive_parts(build_any):
    envs, bare = build_any([CART_POLE] * 3), build_any([CART_POLE] * 3)
    wrapped = TransformReward(envs, lambda rewards: rewards * 2)
    for each in (wrapped, bare):
        each.send_reset(seed=1)
        each.recv(PATIENCE_S)
        each.send([0, 1, 0], [2, 0, 1])
    for rows in ([2], [0, 1]):
        bounds = {"min_rows": len(rows), "max_rows": len(rows)}
        result, expected = (each.recv(PATIENCE_S, **bounds) for each in (wrapped, bare))
        assert index(result) == rows
        assert_identical(result[1], expected[1] * 2)
        assert_identical(result[0], expected[0])


@ORDER
def test_a_worker_that_dies_loses_no_row_of_a_part(build_processes, order):
    envs = build_processes([partial(FaultyEnv, row) for row in range(4)], on_worker_death="restart")
    envs.recv_order = order
    envs.reset(seed=1)
    envs.send([0] * 4, [2, 0, 3, 1])
    parts = [envs.recv(PATIENCE_S, min_rows=1, max_rows=1)]
    kept = deepcopy(parts[0])
    [first] = index(kept)
    envs.send([0], [first])
    end(envs.processes[first // 2].pid)
    rows = []
    while envs.in_flight:
        parts.append(envs.recv(PATIENCE_S, min_rows=1, max_rows=2))
        rows += index(parts[-1])
    assert sorted(rows) == [0, 1, 2, 3], "each row in flight once"
    assert_identical(parts[0], kept)
    envs.step([0] * 4)
