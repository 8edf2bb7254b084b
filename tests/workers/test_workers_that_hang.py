"""With ``on_timeout="restart"``, a worker that hangs costs its rows one episode, nothing else."""

import multiprocessing
import os
import pickle
import select
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cartwheel
from cartwheel.workers import group
from tests.support.executors import PROCESS
from tests.support.faulty import FaultyEnv, fault
from tests.support.processes import sockets
from tests.support.restarts import (
    ATTEMPTS,
    LOST,
    MODES,
    OTHERS,
    ROWS,
    SEED,
    actions,
    assert_cut,
    assert_others_equal,
    end,
)

#: Long compared with every step of these environments, on a busy machine too.
LIMIT = 1.5


@pytest.fixture
def build_processes(build_processes):
    """Forks workers, which takes less than the limit of the construction on a busy machine too."""
    return partial(build_processes, context="fork")


@pytest.fixture
def build(build_processes):
    return partial(build_processes, on_timeout="restart", timeout=LIMIT)


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_hangs_in_a_step_is_restarted(build, caplog, mode):
    envs, twin = build(ROWS, autoreset_mode=mode), PROCESS(ROWS, autoreset_mode=mode)
    envs.reset(seed=SEED)
    twin.reset(seed=SEED)
    pids = envs.get_attr("pid")
    result = envs.step(actions(4, "hang"))
    assert_others_equal(result, twin.step(actions()))
    assert_cut(result)
    [hung] = [record.cartwheel for record in caplog.records]
    assert (hung["event"], hung["env_index"], hung["pid"]) == ("hang", LOST, pids[3])
    if mode == "Disabled":
        envs.reset(options={"reset_mask": np.arange(5) >= 3})
    result = envs.step(actions())
    assert_others_equal(result, twin.step(actions()))
    assert not result[3].any()
    assert envs.get_attr("pid")[:3] == pids[:3]
    assert set(envs.get_attr("pid")[3:]).isdisjoint(pids)
    assert envs.stats().restarts.tolist() == [0, 1]
    twin.close()


@pytest.mark.parametrize("name", ["hold the GIL", pytest.param("spin", marks=pytest.mark.slow)])
def test_a_worker_that_hangs_in_any_way_is_restarted(build, name):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    assert_cut(envs.step(actions(3, name)))


def test_a_worker_that_was_stopped_is_restarted(build):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    os.kill(envs.get_attr("pid")[3], signal.SIGSTOP)
    assert_cut(envs.step(actions()))


LARGE = "x" * 3_000_000  # more than a socket holds


def test_a_worker_that_was_stopped_before_it_read_a_large_message_is_restarted(build):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    pid = envs.get_attr("pid")[3]
    os.kill(pid, signal.SIGSTOP)
    envs.set_attr("text", LARGE)
    assert envs.get_attr("text") == (LARGE,) * 5
    assert envs.get_attr("pid")[3] != pid


def test_a_large_message_that_is_not_read_keeps_to_the_timeout(build_processes):
    envs = build_processes(ROWS, timeout=LIMIT)
    envs.reset(seed=SEED)
    pid = envs.get_attr("pid")[3]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(multiprocessing.TimeoutError, match=r"\[3, 4\]"):
        envs.set_attr("text", LARGE)
    os.kill(pid, signal.SIGCONT)
    envs.call_wait()
    assert envs.get_attr("text") == (LARGE,) * 5


class VerboseEnv(FaultyEnv):
    def talk(self):
        return LARGE


VERBOSE = [partial(VerboseEnv, row) for row in range(5)]


def stop(pid):
    """Stops a process that sends: before it has stopped, what is read lets it send all the rest."""
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)


def stop_within_its_answer(envs):
    """Stops the second worker when it has sent a part of its answer."""
    envs.reset(seed=SEED)
    pid = envs.get_attr("pid")[3]
    envs.call_async("talk")
    while len(select.select(sockets(), [], [], 1)[0]) < 2:  # both have answered
        pass
    stop(pid)
    return pid


def assert_names_the_stopped(envs, timeout=None):
    with pytest.raises(cartwheel.WorkerTimeoutError, match=r"worker 1 \(rows 3 to 4") as failure:
        envs.call_wait(timeout)
    assert (failure.value.env_index, failure.value.workers) == ([3, 4], [1])


def test_an_answer_that_stays_on_its_way_keeps_to_the_timeout(build_processes):
    envs = build_processes(VERBOSE, timeout=LIMIT)
    pid = stop_within_its_answer(envs)
    assert_names_the_stopped(envs)
    os.kill(pid, signal.SIGCONT)
    assert envs.call("talk") == (LARGE,) * 5
    envs.reset(seed=SEED)


@pytest.mark.parametrize("policy", ["raise", "restart"])
def test_an_answer_that_stays_on_its_way_keeps_to_the_timeout_of_its_call(
    build_processes, monkeypatch, policy
):
    """Which always raises: no worker is killed because of it."""
    monkeypatch.setattr(group, "SENDING_S", 0.2)
    envs = build_processes(VERBOSE, on_worker_death=policy)
    pid = stop_within_its_answer(envs)
    assert_names_the_stopped(envs, 0.1)
    os.kill(pid, signal.SIGCONT)
    assert envs.call("talk") == (LARGE,) * 5
    assert envs.get_attr("pid")[3] == pid


class TalkativeEnv(FaultyEnv):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, info | {"words": LARGE}


def test_results_that_stay_on_their_way_are_lost_and_not_waited_for_again(
    build_processes, monkeypatch
):
    """With `min_rows`, a wait that has timed out is repeated for the rows that are done."""
    monkeypatch.setattr(group, "SENDING_S", 0.2)
    envs = build_processes([partial(TalkativeEnv, row) for row in range(5)])
    envs.reset(seed=SEED)
    pid = envs.processes[1].pid
    envs.send([fault("none")] * 2, [3, 4])
    while not select.select(sockets(), [], [], 1)[0]:
        pass
    stop(pid)
    with pytest.raises(cartwheel.WorkerTimeoutError, match="results of this call are lost") as lost:
        envs.recv(0.1, min_rows=2)
    assert (lost.value.workers, lost.value.results_lost) == ([1], True)
    os.kill(pid, signal.SIGCONT)
    while envs.in_flight:
        envs.recv()
    envs.reset(seed=SEED)
    assert not envs.step(actions())[3].any()


def test_a_pending_call_whose_answer_stays_on_its_way_can_be_closed(build_processes, monkeypatch):
    monkeypatch.setattr(group, "SENDING_S", 0.2)
    envs = build_processes(VERBOSE)
    stop_within_its_answer(envs)
    with pytest.warns(UserWarning, match="pending call to `call`"):
        envs.close(timeout=0.1)


def test_a_worker_that_was_stopped_within_its_answer_hangs_in_the_next_call(build):
    envs = build(VERBOSE)
    pid = stop_within_its_answer(envs)
    assert_names_the_stopped(envs)
    assert_cut(envs.step(actions()))
    assert envs.get_attr("pid")[3] != pid


def test_a_worker_that_was_stopped_within_its_answer_is_restarted(build_processes):
    envs = build_processes(VERBOSE, on_worker_death="restart", timeout=LIMIT)
    pid = stop_within_its_answer(envs)
    assert envs.call_wait() == (LARGE,) * 5
    assert envs.get_attr("pid")[3] != pid
    assert_cut(envs.step(actions()))


def seconds_until_both_are_restarted(envs):
    """Both workers hang in the same step."""
    envs.reset(seed=SEED)
    both = np.maximum(actions(0, "hang"), actions(4, "hang"))
    started = time.monotonic()
    _, _, _, truncations, infos = envs.step(both)
    seconds = time.monotonic() - started
    assert truncations.all()
    assert infos["worker_restarted"].all()
    return seconds


def test_both_workers_may_hang_at_once(build):
    attempts = (seconds_until_both_are_restarted(build(ROWS)) for _ in range(ATTEMPTS))
    assert any(seconds < 2 * LIMIT for seconds in attempts), "they hung in turn"


def test_a_worker_that_hangs_while_rows_are_in_flight_is_restarted(build):
    """The rows of the other worker keep arriving, so no receipt ever waits for long."""
    envs = build(ROWS, batch_size=2)
    envs.send_reset(seed=SEED)
    arrived, lost = dict.fromkeys(range(5), 0), set()
    while lost != set(LOST):
        _, _, _, truncations, infos = envs.recv()
        rows = infos["env_index"].tolist()
        for at, row in enumerate(rows):
            arrived[row] += 1
            if "worker_restarted" in infos and infos["worker_restarted"][at]:
                assert truncations[at]
                lost.add(row)
        time.sleep(0.01)  # so that there are few receipts until the worker counts as hung
        hangs = [fault("hang") if row == 4 and arrived[4] == 1 else fault("none") for row in rows]
        envs.send(hangs, rows)
    assert min(arrived[row] for row in OTHERS) > 1
    assert envs.stats().restarts.tolist() == [0, 1]


def test_a_worker_whose_results_wait_for_a_busy_program_does_not_hang(build_processes):
    """All rows are done, and the program works for longer than the limit between two receipts."""
    envs = build_processes(ROWS, batch_size=1, on_timeout="restart", timeout=0.8)
    pids = envs.get_attr("pid")
    envs.send_reset(seed=SEED)
    time.sleep(0.2)
    received = []
    for _ in ROWS:  # with a look at the workers in every receipt but for the last one
        received += envs.recv()[-1]["env_index"].tolist()
        time.sleep(1.0)
    assert sorted(received) == list(range(5))
    assert envs.stats().restarts.tolist() == [0, 0]
    assert envs.get_attr("pid") == pids


class Answer:
    """The number of an environment, once it was pickled."""

    def __init__(self, env):
        self.env = env

    def __reduce__(self):
        self.env.hang_once("answer")
        return int, (self.env.row,)


class HangsOnceEnv(FaultyEnv):
    """Hangs in its first reset or call, or when its answer is pickled; not if the file exists."""

    def __init__(self, row, path, method):
        super().__init__(row)
        self.path, self.method = path, method

    def hang_once(self, method):
        if method == self.method and self.row == 3 and not self.path.exists():
            self.path.touch()
            self.commit("hang")

    def reset(self, *, seed=None, options=None):
        self.hang_once("reset")
        return super().reset(seed=seed, options=options)

    def number(self):
        self.hang_once("number")
        return Answer(self)


@pytest.mark.parametrize("method", ["reset", "number", "answer"])
def test_a_worker_that_hangs_in_a_reset_or_a_call_is_restarted(build, tmp_path, method):
    path = tmp_path / "hung"
    envs = build([partial(HangsOnceEnv, row, path, method) for row in range(5)])
    observations, infos = envs.reset(seed=SEED)
    expected = [FaultyEnv(row).reset(seed=SEED + row)[0] for row in range(5)]
    np.testing.assert_array_equal(observations, expected)
    assert ("worker_restarted" in infos) == (method == "reset")
    assert list(envs.call("number")) == list(range(5))
    assert path.exists()
    assert envs.stats().restarts.tolist() == [0, 1]


def test_a_worker_that_dies_by_itself_is_still_an_error(build):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    end(envs.get_attr("pid")[3])
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step(actions())


def test_a_worker_that_hangs_too_often_is_an_error_that_names_it(build):
    envs = build(ROWS, max_restarts=0)
    envs.reset(seed=SEED)
    with pytest.raises(cartwheel.WorkerTimeoutError) as failure:
        envs.step(actions(3, "hang"))
    assert failure.value.env_index == LOST
    assert failure.value.workers == [1]
    text = "made no progress in `step` for 1.5 second(s) and was killed"
    assert str(failure.value).endswith(text)
    assert failure.value.__notes__ == ["it was restarted 0 times before (max_restarts)"]
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step(actions())


def test_the_timeout_of_a_single_call_restarts_nothing(build, gates):
    envs = build(gates.env_fns(2), timeout=60)
    envs.reset()
    envs.step_async([1, 0])
    waited_for = None
    while waited_for != [0]:  # until row 1 has answered
        with pytest.raises(cartwheel.WorkerTimeoutError) as failure:
            envs.step_wait(timeout=0.05)
        waited_for = failure.value.env_index
    assert failure.value.workers == [0]
    gates.open(1)
    assert envs.step_wait()[1].tolist() == [1, 0]
    assert envs.stats().restarts.sum() == 0


def test_what_is_pending_after_a_timeout_is_named_with_the_ways_out(build_processes, gates):
    envs = build_processes(gates.env_fns(2), num_workers=2)
    envs.reset()
    envs.step_async([0, 1])
    waited_for = None
    while waited_for != [1]:  # until row 0 has answered
        with pytest.raises(TimeoutError) as late:
            envs.step_wait(timeout=0.05)
        waited_for = late.value.env_index
    with pytest.raises(cartwheel.errors.gym.error.AlreadyPendingCallError) as failure:
        envs.step([0, 0])
    assert failure.value.__notes__ == [
        "the wait for it was given up, and rows [1] have not answered: `step_wait()` waits again, "
        "`reset()` drops the results"
    ]
    gates.open(1)
    assert envs.step_wait()[1].tolist() == [0, 1]


def test_a_timeout_error_is_pythons_and_multiprocessings_and_can_be_pickled():
    error = cartwheel.WorkerTimeoutError("late", env_index=[3, 4], workers=[1])
    for made in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(made, TimeoutError)
        assert isinstance(made, multiprocessing.TimeoutError)
        assert (str(made), made.env_index, made.workers) == ("late", [3, 4], [1])


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({}, "`on_timeout='restart'` needs a positive `timeout`"),
        ({"timeout": 0}, "`on_timeout='restart'` needs a positive `timeout`"),
        ({"timeout": 1, "executor": "thread"}, "needs executor='process'"),
        ({"timeout": 1, "executor": "inline"}, "needs executor='process'"),
        ({"on_timeout": "kill"}, "`on_timeout` must be one of 'raise', 'restart', got 'kill'"),
    ],
)
def test_what_cannot_be_restarted_is_refused_before_an_environment_is_made(keywords, text):
    def never():
        raise AssertionError("an environment was created")

    with pytest.raises(ValueError, match=text):
        cartwheel.VectorEnv([never], **{"on_timeout": "restart", **keywords})


def test_auto_chooses_processes_where_workers_are_to_be_restarted():
    envs = cartwheel.VectorEnv([partial(FaultyEnv, 0)], on_timeout="restart", timeout=60)
    assert envs.executor == "process"
    envs.close()
