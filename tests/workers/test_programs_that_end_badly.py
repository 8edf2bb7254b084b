"""However a program ends or is interrupted, its workers end too, silently, and nothing hangs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support import programs, repetitions
from tests.support.processes import wait_until_gone
from tests.support.programs import ROOT, STRICT, served
from tests.support.repetitions import times

pytestmark = pytest.mark.usefixtures("program_server")

EXECUTORS = ["inline", "thread", "process"]
#: Start methods that read the main module again: one by default.
READING = ["spawn", pytest.param("forkserver", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def strict_server():
    """As ``program_server``, for programs that are checked more than usually."""
    with contextlib.nullcontext() if repetitions.full else served(STRICT):
        yield


def start(*arguments):
    """Starts a program in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.programs", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(name, *arguments, **keywords):
    """The report of a program, its exit code, and its stderr."""
    ended = programs.run(name, *arguments, **keywords)
    return ended.facts if ended.stdout else {}, ended.returncode, ended.stderr


#: Who holds the GIL also hangs and spins.
STATES = ["idle", "hold the GIL", "building"]
PARTS_OF_THEM = [pytest.param("fork", state, marks=pytest.mark.slow) for state in ("hang", "spin")]


@pytest.mark.parametrize(
    ("context", "state"),
    [
        *[("fork", state) for state in STATES],
        *PARTS_OF_THEM,
        # The start method hardly matters for how a process ends: only the states that differ most.
        ("forkserver", "hold the GIL"),
        ("spawn", "building"),
        pytest.param("forkserver", "building", marks=pytest.mark.slow),
        pytest.param("spawn", "hold the GIL", marks=pytest.mark.slow),
    ],
)
def test_workers_die_with_the_program_that_started_them(context, state, tmp_path):
    program = start("wait_to_be_killed", context, state, str(tmp_path))
    try:
        facts = json.loads(program.stdout.readline())
        assert len(facts["all"]) >= 2
        program.kill()
        program.wait()
        assert not wait_until_gone(facts["all"], timeout_s=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


@pytest.mark.parametrize(
    ("context", "state"),
    [
        ("forkserver", "idle"),
        ("fork", "hold the GIL"),
        pytest.param("fork", "idle", marks=pytest.mark.slow),
        pytest.param("fork", "hang", marks=pytest.mark.slow),
        pytest.param("spawn", "idle", marks=pytest.mark.slow),
    ],
)
def test_workers_die_with_a_program_that_becomes_another_one(context, state):
    program = start("execute_another_program", context, state)
    try:
        facts = json.loads(program.stdout.readline())
        assert len(facts["workers"]) == 2
        assert not wait_until_gone(facts["workers"], timeout_s=30)
        assert program.poll() is None
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


@pytest.mark.parametrize("serves", [served, contextlib.nullcontext])
def test_ctrl_c_in_a_test_ends_the_program_that_it_runs(serves, monkeypatch, tmp_path):
    pids, flags = [], ("-B",)  # for which no other test has a server

    def read_a_line(outputs, _):
        with os.fdopen(os.dup(outputs[0]), encoding="utf-8") as output:
            pids.extend(json.loads(output.readline())["all"])
        raise KeyboardInterrupt

    monkeypatch.setattr(programs, "_read_to_the_end", read_a_line)
    with serves(flags), pytest.raises(KeyboardInterrupt):
        programs.run("wait_to_be_killed", "fork", "idle", tmp_path, flags=flags)
    assert len(pids) >= 2
    assert not wait_until_gone(pids, timeout_s=30)


@pytest.mark.parametrize("target", ["process", "group"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_control_c_in_a_long_step_is_noticed_at_once_and_a_reset_recovers(executor, target):
    facts, code, err = run("interrupt_a_long_step", executor, target)
    assert code == 0, err
    assert facts == {"interrupts": 2}
    assert err == ""


@pytest.mark.parametrize("target", ["process", "group"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_control_c_at_any_moment_is_recoverable(executor, target):
    count = times(8, with_full=25)
    facts, code, err = run("interrupt_at_random_moments", executor, target, str(count))
    assert code == 0, err
    assert facts == {"interrupts": count}
    assert err == ""


@pytest.mark.parametrize("target", ["process", "group"])
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_control_c_while_receiving_loses_no_row(executor, target):
    facts, code, err = run("interrupt_a_receipt", executor, target)
    assert code == 0, err
    assert facts == {"interrupts": 2}
    assert err == ""


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_forked_child_cannot_disturb_its_parent(executor):
    facts, code, err = run("fork_with_live_environments", executor)
    assert code == 0, err
    if executor == "process":
        assert facts["answers"][0] == "ForkedProcessError"


@pytest.mark.usefixtures("strict_server")
@pytest.mark.parametrize("daemon", ["daemon", "not daemon"])
def test_a_forked_child_that_ends_ends_no_worker_of_its_parent(daemon):
    assert run("end_in_a_forked_child", daemon, flags=STRICT) == ({"code": 5}, 0, "")


ENDINGS = ["end", "pending", "collected", "global", "cycle", "exception", "exit", "exit at once"]
ENDINGS += ["exit in a step", "thread"]


@pytest.mark.parametrize(
    ("executor", "how"),
    [
        *[(executor, how) for executor in ("thread", "process") for how in ENDINGS],
        *[("inline", how) for how in ("end", "exception", "exit in a step", "thread")],
    ],
)
@pytest.mark.usefixtures("strict_server")
def test_a_program_may_end_without_close(executor, how):
    facts, code, err = run("end_without_close", executor, how, flags=STRICT)
    codes = {"exception": 1, "exit": 7, "exit at once": 7, "exit in a step": 3}
    if executor == "process":
        codes["exit in a step"] = 1  # an environment that exits is an error like any other
    assert code == codes.get(how, 0), err
    assert not wait_until_gone(facts["all"], timeout_s=30)
    if how == "exception":
        assert err.rstrip().endswith("ValueError: at top level")
        assert err.count("Traceback") == 1
    elif code == 1:
        assert "RemoteEnvError: SystemExit: 3" in err
    else:
        assert "Traceback" not in err
        assert "leaked" not in err


#: As `tempfile.TemporaryDirectory` does: finalizers that are called after those of multiprocessing.
FINALIZERS_FIRST = """
import sys, weakref
weakref.finalize(weakref.WeakSet, lambda: None)
from tests.programs.endings import leave_unclosed
leave_unclosed(*sys.argv[1:])
"""


@pytest.mark.parametrize("where", ["program", "process"])
@pytest.mark.parametrize(
    ("executor", "daemon"),
    [("inline", "daemon"), ("thread", "daemon"), ("process", "daemon"), ("process", "not daemon")],
)
def test_unclosed_environments_are_closed_wherever_their_program_ends(
    executor, daemon, where, tmp_path
):
    start = ["-c", FINALIZERS_FIRST]
    if where == "process":
        start = ["-m", "tests.programs", "leave_unclosed_in_a_process"]
    program = [sys.executable, *STRICT, *start, executor, daemon, str(tmp_path)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}


@pytest.mark.parametrize(
    ("executor", "state"),
    [("inline", "none"), ("thread", "none"), ("process", "none"), ("process", "hang")],
)
def test_a_program_may_end_with_rows_in_flight(executor, state):
    facts, code, err = run("end_with_rows_in_flight", executor, state)
    assert code == 0, err
    assert err == ""
    assert not wait_until_gone(facts["all"], timeout_s=30)


def test_a_hanging_thread_blocks_neither_close_nor_exit():
    facts, code, err = run("close_while_a_thread_hangs")
    assert code == 0, err
    assert facts["seconds"] < 10


def test_environments_defined_in_the_program_itself_reach_the_workers():
    facts, code, err = run("transcript_of_a_local_class")
    assert (facts, code) == ({"done": True}, 0), err


@pytest.mark.parametrize("context", [*READING, pytest.param("fork", marks=pytest.mark.slow)])
def test_a_script_with_its_environment_in_main_works(tmp_path, context):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import gymnasium as gym
            import cartwheel

            class Mine(gym.Wrapper):
                def reward(self):
                    return 1

            def build():
                return Mine(gym.make("CartPole-v1"))

            if __name__ == "__main__":
                envs = cartwheel.VectorEnv([build] * 3, executor="process", context={context!r})
                print(envs.reset(seed=1)[0].shape, envs.step([0, 1, 0])[1].tolist())
            """
        )
    )
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "(3, 4) [1.0, 1.0, 1.0]\n"


#: Bytes that environments' functions have when they are pickled: with those of the second, they do
#: not fit into a pipe, and a worker that ends early does not read them.
SIZES = (10, 1_000_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("context", READING)
def test_a_script_without_a_main_guard_is_asked_for_it_once(tmp_path, context, size):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import gymnasium as gym
            import cartwheel

            weights = bytes({size})
            envs = cartwheel.VectorEnv(
                [lambda: weights and gym.make("CartPole-v1")] * 3,
                executor="process",
                num_workers=2,
                context={context!r},
            )
            """
        )
    )
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1, result.stderr
    last = result.stderr.splitlines()[-1]
    assert 'WorkerDiedError: is `if __name__ == "__main__":` missing?' in last
    assert result.stderr.count("__main__") == 1


@pytest.mark.parametrize("size", [pytest.param(SIZES[0], marks=pytest.mark.slow), SIZES[1]])
@pytest.mark.parametrize("context", READING)
def test_a_program_from_stdin_is_told_to_be_a_file(tmp_path, context, size):
    program = f"""if True:
        import gymnasium as gym
        import cartwheel

        weights = bytes({size})
        make = lambda: weights and gym.make("CartPole-v1")
        cartwheel.VectorEnv([make] * 2, executor="process", num_workers=2, context={context!r})
    """
    result = subprocess.run(
        [sys.executable, "-"],
        input=program,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 1
    assert "there is no file '<stdin>': save the program as a file, or use" in result.stderr


def test_awaited_rows_ask_a_script_for_its_main_guard_and_for_nothing_else(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import asyncio
            import gymnasium as gym
            import cartwheel

            async def main():
                async with cartwheel.AwaitableEnvs([lambda: gym.make("CartPole-v1")]) as envs:
                    await envs.reset(0)

            asyncio.run(main())
            """
        )
    )
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert 'WorkerDiedError: is `if __name__ == "__main__":` missing?' in last
    assert "fork" not in last  # which awaited rows refuse


@pytest.mark.parametrize("executor", ["auto", "process"])
def test_a_daemonic_process_steps_inline_or_says_why_it_cannot(executor):
    facts, code, err = run("step_in_a_daemonic_process", executor)
    assert code == 0, err
    if executor == "auto":
        assert facts == {"answer": "inline"}
    else:
        assert "is daemonic and may have no child processes: make the vector" in facts["answer"]


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_program_that_was_interrupted_in_a_step_ends_without_waiting_for_it(executor):
    """The grace of other programs is an hour here, so a program that grants it does not end."""
    facts, code, err = run("end_after_an_interrupt", executor)
    assert code == -signal.SIGINT, err
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert not wait_until_gone(facts["all"], timeout_s=30)
