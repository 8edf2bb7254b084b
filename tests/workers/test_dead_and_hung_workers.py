"""A worker that dies is named at once; a worker that hangs does not block `close`."""

import os
import re
import signal
import threading
import time
from functools import partial
from multiprocessing import TimeoutError

import pytest

import cartwheel
from cartwheel.vector import base
from tests.support.environments import transcripts
from tests.support.faulty import FaultyEnv, fault
from tests.support.gates import LIMIT_S, GatedEnv
from tests.support.processes import wait_until_gone
from tests.support.restarts import ATTEMPTS, ROWS

#: Faults that end a process, and what the error must say; `test_every_death_is_named.py` has more.
DEATHS = {"exit 3": r"code 3", "kill": r"SIGKILL|signal 9"}


def actions(row, name):
    return [fault(name) if row == other else fault("none") for other in range(5)]


def assert_names_worker(error, pid, how):
    """The error names the second worker, which steps rows 3 and 4."""
    assert isinstance(error, RuntimeError)
    assert (error.worker, list(error.env_index), error.pid) == (1, [3, 4], pid)
    for part in ("worker 1", "3", "4", str(pid)):
        assert part in str(error)
    assert re.search(how, str(error)), f"not {how!r}: {error}"


def assert_close_ends(envs, pids, within_s=5, **keywords):
    """`close` returns in time, and ends every process."""
    started = time.monotonic()
    envs.close(**keywords)
    assert time.monotonic() - started < within_s
    assert not wait_until_gone(pids, timeout_s=5)


def assert_stays_broken_and_closes(envs, pids):
    """Every call raises the same error, and `close` ends every process."""
    for call in (lambda: envs.step(actions(0, "none")), envs.reset, lambda: envs.get_attr("pid")):
        with pytest.raises(cartwheel.WorkerDiedError):
            call()
    assert_close_ends(envs, pids)
    assert envs.closed


@pytest.mark.parametrize("name", DEATHS)
def test_a_worker_that_dies_in_a_call_is_named(build_processes, name):
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.call("fail_in_row", 3, name)
    assert_names_worker(failure.value, pids[3], DEATHS[name])
    assert_stays_broken_and_closes(envs, pids)


def seconds_until_named(envs, how):
    """Kills a worker in a long step, and checks the error."""
    pids = envs.get_attr("pid")
    envs.reset()
    killed = []

    def kill():
        killed.append(time.monotonic())
        os.kill(pids[3], how)

    timer = threading.Timer(0.3, kill)
    timer.start()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.step(actions(3, "hang"))
    seconds = time.monotonic() - killed[0]
    timer.join()
    assert_names_worker(failure.value, pids[3], f"{how.name}|signal {how.value}")
    assert_stays_broken_and_closes(envs, pids)
    return seconds


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_worker_that_is_killed_in_a_long_step_is_named_within_a_second(build_processes, how):
    attempts = (seconds_until_named(build_processes(ROWS), how) for _ in range(ATTEMPTS))
    assert any(seconds < 1 for seconds in attempts)


def test_a_death_is_reported_without_waiting_for_other_workers(build_processes):
    """Row 0 hangs in the other worker."""
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    started = time.monotonic()
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step([fault("hang"), 0, 0, 0, fault("exit 3")])
    assert time.monotonic() - started < LIMIT_S
    assert_close_ends(envs, pids, timeout=0.3)


def test_a_worker_that_dies_while_a_step_is_pending_is_named(build_processes):
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    envs.step_async(actions(4, "exit 3"))
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.step_wait(timeout=30)
    assert_names_worker(failure.value, pids[3], DEATHS["exit 3"])


def test_closing_with_a_dead_worker_raises_nothing(build_processes):
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    os.kill(pids[0], signal.SIGKILL)
    assert_close_ends(envs, pids)


@pytest.mark.parametrize("name", ["hang", "spin", "hold the GIL"])
def test_a_wait_for_a_hanging_worker_ends_at_its_timeout(build_processes, name):
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    envs.step_async(actions(3, name))
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0.3)
    assert 0.2 < time.monotonic() - started < LIMIT_S
    with pytest.warns(UserWarning, match="pending call to `step`"):
        assert_close_ends(envs, pids, timeout=0.3)


def test_a_wait_for_a_stopped_worker_ends_at_its_timeout(build_processes):
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    os.kill(pids[3], signal.SIGSTOP)
    envs.step_async(actions(0, "none"))
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0.3)
    with pytest.warns(UserWarning, match="pending call to `step`"):
        assert_close_ends(envs, pids, timeout=0.3)


class WaitingAnswer:
    """Waits at gate 1 while it is pickled."""

    def __init__(self, gates):
        self.gates = gates

    def __reduce__(self):
        self.gates.stand_at(1)
        return str, ("an answer",)


class WaitingError(Exception):
    """Waits at gate 1 while it is pickled."""

    def __init__(self, gates):
        super().__init__("an error")
        self.gates = gates

    def __reduce__(self):
        self.gates.stand_at(1)
        return type(self), (self.gates,)


class WaitsWhilePicklingEnv(GatedEnv):
    def step(self, _):
        raise WaitingError(self.gates)

    def answer(self):
        return WaitingAnswer(self.gates)


def test_a_wait_for_an_exception_that_is_being_pickled_ends_at_its_timeout(build_processes, gates):
    envs = build_processes([partial(WaitsWhilePicklingEnv, gates)] * 2, num_workers=2)
    envs.reset()
    envs.step_async([0, 0])
    gates.await_arrival(1)
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.step_wait(timeout=0.05)
    gates.open(1)
    with pytest.raises(WaitingError, match="an error"):
        envs.step_wait(timeout=LIMIT_S)


def test_a_row_that_was_sent_and_whose_exception_is_being_pickled_has_not_arrived(
    build_processes, gates
):
    envs = build_processes([partial(WaitsWhilePicklingEnv, gates)] * 2, num_workers=2)
    envs.reset()
    envs.send([0], [1])
    gates.await_arrival(1)
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.recv(timeout=0.05)
    assert envs.in_flight == [1]
    gates.open(1)
    with pytest.raises(WaitingError, match="an error"):
        envs.recv(timeout=LIMIT_S)


def test_a_wait_for_an_answer_that_is_being_pickled_ends_at_its_timeout(build_processes, gates):
    envs = build_processes([partial(WaitsWhilePicklingEnv, gates)] * 2, num_workers=2)
    envs.call_async("answer")
    gates.await_arrival(1)
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.call_wait(timeout=0.05)
    gates.open(1)
    assert envs.call_wait(timeout=LIMIT_S) == ("an answer",) * 2


def test_a_worker_that_is_stopped_and_continued_loses_nothing(build_processes):
    envs = build_processes(transcripts(9, 9, 9, 9))
    pids = [int(pid) for pid in _worker_pids(envs)]
    envs.reset()
    os.kill(pids[-1], signal.SIGSTOP)
    envs.step_async([1, 2, 3, 4])
    with pytest.raises(TimeoutError):
        envs.step_wait(timeout=0.2)
    os.kill(pids[-1], signal.SIGCONT)
    assert envs.step_wait()[1].tolist() == [1, 2, 3, 4]
    assert envs.step([5, 6, 7, 8])[1].tolist() == [5, 6, 7, 8]


def _worker_pids(envs):
    envs.set_attr("getpid", os.getpid)
    return envs.call("getpid")


def test_closing_without_a_timeout_ends_although_an_environment_hangs(build_processes, monkeypatch):
    monkeypatch.setattr(base, "CLOSE_GRACE", 0.5)
    envs = build_processes(ROWS)
    pids = envs.get_attr("pid")
    envs.reset()
    envs.step_async(actions(3, "hang"))
    with pytest.warns(UserWarning, match="pending call to `step`"):
        assert_close_ends(envs, pids, within_s=30)


def seconds_to_close(envs, timeout):
    """Closes while a step hangs."""
    envs.reset()
    envs.step_async(actions(3, "hang"))
    started = time.monotonic()
    with pytest.warns(UserWarning, match="pending call to `step`"):
        envs.close(timeout=timeout)
    return time.monotonic() - started


def test_a_pending_call_and_closing_share_one_timeout(build_processes, monkeypatch):
    monkeypatch.setattr(base, "LAST_GRACE", 0.1)
    attempts = (seconds_to_close(build_processes(ROWS), timeout=2) for _ in range(ATTEMPTS))
    assert any(seconds < 4 for seconds in attempts), "each took the whole timeout"


def test_an_environment_that_hangs_when_closed_does_not_block_closing(build_processes, monkeypatch):
    monkeypatch.setattr(base, "CLOSE_GRACE", 0.5)
    envs = build_processes([HangingWhenClosedEnv] * 2)
    pids = envs.get_attr("pid")
    assert_close_ends(envs, pids, within_s=30)


class HangingWhenClosedEnv(FaultyEnv):
    def close(self):
        self.commit("hang")
