"""The last stderr lines of a dead worker are in its error, and the log shows what happens."""

import logging
import os
import signal
import sys
import threading
import time
from functools import partial
from multiprocessing import TimeoutError

import pytest

import cartwheel
from tests.support.cases import SHORT
from tests.support.environments import SleepingEnv, TranscriptEnv
from tests.support.executors import FORK_FIRST
from tests.support.faulty import FaultyEnv, fault
from tests.support.in_parts import PATIENCE_S
from tests.support.platforms import linux_only
from tests.support.processes import wait_until_gone
from tests.support.programs import run_program
from tests.support.restarts import ATTEMPTS

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.fixture
def logged(caplog):
    """The messages of the logger ``cartwheel`` at a level."""
    caplog.set_level(logging.DEBUG, logger="cartwheel")

    def logged(level):
        return [record.getMessage() for record in caplog.records if record.levelno == level]

    return logged


class TalkativeEnv(FaultyEnv):
    """Writes what it is about to do to stderr."""

    lines = 1

    def commit(self, name):
        for line in range(self.lines):
            print(f"{line}: about to {name}", file=sys.stderr)
        return super().commit(name)


class VeryTalkativeEnv(TalkativeEnv):
    lines = 3_000


def talkative(env=TalkativeEnv):
    return [partial(env, row) for row in range(3)]


def actions(name, num_envs=3):
    return [fault("none")] * (num_envs - 1) + [fault(name)]


def test_a_new_vector_environment_is_logged(build_workers, logged):
    envs = build_workers(talkative())
    [text] = logged(logging.DEBUG)
    pids = [process.pid for process in envs.processes]
    for part in ("VectorEnv", "3 environments", envs.executor, "2 workers", str(pids)):
        assert part in text


def test_new_native_environments_are_logged(logged):
    cartwheel.NativeVectorEnv("CartPole-v1", 7, num_workers=2).close()
    [text] = logged(logging.DEBUG)
    assert "CartPole-v1 of 7 environments: 2 threads" in text


@pytest.mark.parametrize("context", FORK_FIRST)
@pytest.mark.parametrize("name", ["exit 3", "kill"])
def test_the_last_lines_of_a_dead_worker_are_in_its_error(build_processes, logged, context, name):
    envs = build_processes(talkative(), context=context)
    envs.reset()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.step(actions(name))
    assert failure.value.stderr.splitlines()[-1] == f"0: about to {name}"
    assert f"\n  0: about to {name}" in str(failure.value)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step(actions(name))
    assert logged(logging.WARNING) == [str(failure.value)], "logged once"


def test_the_error_of_a_crash_says_where_it_happened(build_processes):
    envs = build_processes(talkative())
    envs.reset()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.step(actions("crash"))
    for part in ("about to crash", "Segmentation fault", "faulty.py", "in _crash"):
        assert part in failure.value.stderr
    assert "Extension modules" not in failure.value.stderr


def test_a_worker_that_is_aborted_says_what_it_was_doing(build_processes):
    envs = build_processes(talkative())
    envs.reset()
    os.kill(envs.processes[1].pid, signal.SIGABRT)
    wait_until_gone([envs.processes[1].pid], timeout_s=30)
    with pytest.raises(cartwheel.WorkerDiedError, match=r"Aborted(.|\n)*in serve_process"):
        envs.step(actions("none"))


def test_only_the_end_of_a_long_stderr_is_kept(build_processes):
    envs = build_processes(talkative(env=VeryTalkativeEnv))
    envs.reset()
    with pytest.raises(cartwheel.WorkerDiedError) as failure:
        envs.step(actions("exit 3"))
    lines = failure.value.stderr.splitlines()
    assert 2000 < len(failure.value.stderr) <= 4096
    last = [f"{line}: about to exit 3" for line in range(3_000 - len(lines), 3_000)]
    assert lines == last, "only whole lines are kept"


def test_what_a_worker_writes_to_stderr_is_seen_at_once():
    facts = run_program("write_to_stderr")
    assert facts["before_the_end"] == ["python\n", "descriptor\n"]


@linux_only("files in memory have names there")
def test_ctrl_c_while_files_of_workers_are_made_leaves_none_open():
    assert run_program("interrupt_the_making_of_files") == {"interrupts": 300, "left": 0}


def test_a_worker_that_crashes_when_it_is_closed_is_logged(build_processes, logged):
    envs = build_processes([partial(CrashesWhenClosedEnv, row) for row in range(2)])
    envs.reset()
    envs.close()
    for worker, text in enumerate(logged(logging.WARNING)):
        assert text.startswith(f"worker {worker}: when closed, it was ended by SIGSEGV")
        assert "in _crash" in text
    assert worker == 1


class ClosesAtAGateEnv(TranscriptEnv):
    """Needs as long to close as a gate is shut."""

    def __init__(self, gates):
        super().__init__(9)
        self.gates = gates

    def close(self):
        self.gates.stand_at(1)


def test_environments_that_need_longer_to_close_are_named(build_workers, logged, caplog, gates):
    for _ in range(ATTEMPTS):
        caplog.clear()
        envs = build_workers([lambda: TranscriptEnv(9), partial(ClosesAtAGateEnv, gates)])
        envs.reset()
        envs.close(timeout=0.3)
        texts = logged(logging.WARNING)
        if len(texts) == 1:  # worker 0 was not late, too
            break
    [text] = texts
    what = {"process": "was killed", "thread": "continues until the program ends"}[envs.executor]
    assert text.startswith(f"worker 1 (row 1) {what}: its environments had not closed after 0.3")
    assert "`close(timeout=...)`" in text


@pytest.mark.parametrize("how", ["terminate", "while a call is late"])
def test_workers_that_are_not_waited_for_are_ended_without_a_word(
    build_workers, logged, gates, how
):
    envs = build_workers([partial(ClosesAtAGateEnv, gates), *gates.env_fns(1)])
    envs.reset()
    if how == "terminate":
        envs.close(terminate=True)
    else:
        envs.step_async([0, 2])
        with pytest.raises(TimeoutError):
            envs.step_wait(timeout=0.01)
        with pytest.warns(UserWarning, match="pending call"):
            envs.close(timeout=0.1)
    assert logged(logging.WARNING) == []


@pytest.mark.parametrize("where", ["with SIGCHLD ignored", "in a thread of a pool"])
def test_a_healthy_close_says_nothing(where):
    assert run_program("close_in_silence", where) == {"written": ""}


class CrashesWhenClosedEnv(TalkativeEnv):
    def close(self):
        self.commit("crash")


@pytest.mark.parametrize("how", ["step", "recv"])
def test_a_long_wait_is_logged_repeatedly(build_workers, logged, caplog, monkeypatch, how, gates):
    monkeypatch.setenv("CARTWHEEL_REMINDER_S", "0.1")
    envs = build_workers(gates.env_fns(3))
    envs.reset()
    caplog.clear()  # the reset may have taken long

    def end_the_wait_after_three_reminders():
        deadline = time.monotonic() + PATIENCE_S / 2  # well before the limit of the gate
        while len(logged(logging.WARNING)) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        gates.open(1)

    listener = threading.Thread(target=end_the_wait_after_three_reminders)
    listener.start()
    began = time.monotonic()
    if how == "step":
        observations = envs.step([0, 0, 1])[0]
    else:
        envs.send([0, 1], [1, 2])
        observations = envs.recv()[0]
    waited_s = time.monotonic() - began
    listener.join()
    assert observations.tolist() == [[1]] * len(observations)
    texts = logged(logging.WARNING)
    assert 3 <= len(texts) <= waited_s / 0.1
    for text in texts:
        assert text.startswith(f"{how}: still waiting for rows [")
        assert "2] (worker 1" in text
        if envs.processes:
            assert f"pid {envs.processes[1].pid})" in text
    for record in caplog.records:
        fields = record.cartwheel
        assert (fields["event"], fields["call"]) == ("slow", how)
        assert fields["env_index"][-1] == 2
        assert fields["workers"][-1] == (0 if envs.executor == "inline" else 1)


def test_ctrl_c_while_a_long_wait_is_logged_ends_the_wait(build_workers, monkeypatch, gates):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setenv("CARTWHEEL_REMINDER_S", "0.1")
    envs = build_workers(gates.env_fns(3))
    envs.reset()
    monkeypatch.setattr(envs._callbacks, "still_waiting", interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.step([0, 0, 1])
    gates.open(1)
    assert envs.reset()[0].tolist() == [[0]] * 3


def test_a_wait_that_is_logged_still_ends_at_its_timeout(
    build_workers, logged, caplog, monkeypatch, gates
):
    monkeypatch.setenv("CARTWHEEL_REMINDER_S", "0.1")
    envs = build_workers(gates.env_fns(3))
    envs.reset()
    caplog.clear()  # the reset may have taken long
    envs.step_async([0, 0, 1])
    deadline = time.monotonic() + PATIENCE_S / 2  # well before the limit of the gate
    while not logged(logging.WARNING) and time.monotonic() < deadline:
        # A thread that gets no processor during the whole wait has no time to log it.
        with pytest.raises(TimeoutError, match=r"after 0\.35 second"):
            envs.step_wait(timeout=0.35)
    assert logged(logging.WARNING)
    gates.open(1)
    assert envs.step_wait()[0].tolist() == [[1]] * 3


@pytest.mark.parametrize("value", ["", "0", "1e300", "inf"])
def test_a_short_wait_is_not_logged_and_zero_or_too_many_seconds_disable_reminders(
    build_workers, logged, monkeypatch, value
):
    if value:
        monkeypatch.setenv("CARTWHEEL_REMINDER_S", value)
    envs = build_workers([SleepingEnv] * 2)
    envs.reset()
    envs.step([0.0, 0.3])
    assert logged(logging.WARNING) == []


@pytest.mark.parametrize("value", ["soon", "-1", "nan", ""])
@pytest.mark.parametrize("variable", ["CARTWHEEL_REMINDER_S", "CARTWHEEL_CPUS"])
def test_a_variable_that_is_not_a_number_is_refused(build_any, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"{variable} must be a number of .* got '{value}'"):
        build_any([SHORT[0]] * 2)
