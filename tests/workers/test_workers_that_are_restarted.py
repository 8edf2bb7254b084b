"""With ``on_worker_death="restart"``, a worker's death costs its rows one episode, nothing else."""

import contextlib
import logging
import os
import signal
import threading
import time
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest

import cartwheel
from cartwheel.workers import callbacks, replacement
from cartwheel.workers.serving.worker import Worker
from tests.support.executors import PROCESS, SENDING
from tests.support.faulty import FaultyEnv, fault
from tests.support.restarts import (
    LOST,
    MODES,
    ROWS,
    SEED,
    WITHOUT_A_SHAPE,
    AddressedEnv,
    ShortEnv,
    actions,
    assert_cut,
    assert_others_equal,
    end,
)
from tests.support.threads import in_thread


@pytest.fixture
def build(build_processes):
    return partial(build_processes, on_worker_death="restart")


def test_the_policy_asks_for_a_worker_where_one_environment_would_be_stepped_inline():
    """Otherwise the program would die with its environment."""
    with contextlib.closing(cartwheel.VectorEnv([FaultyEnv])) as envs:
        assert envs.executor == "inline"
    with contextlib.closing(cartwheel.VectorEnv([FaultyEnv], on_worker_death="restart")) as envs:
        assert envs.executor == "process"
        envs.reset(seed=SEED)
        *_, infos = envs.step([fault("kill")])
        assert infos["worker_restarted"].tolist() == [True]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["exit 0", "exit 3", "kill", "crash"])
def test_a_worker_that_dies_in_a_step_truncates_its_rows(build, mode, name):
    envs, twin = build(ROWS, autoreset_mode=mode), PROCESS(ROWS, autoreset_mode=mode)
    envs.reset(seed=SEED)
    twin.reset(seed=SEED)
    pids = envs.get_attr("pid")
    for _ in range(2):
        envs.step(actions())
        twin.step(actions())
        result, undisturbed = envs.step(actions(4, name)), twin.step(actions())
        assert_others_equal(result, undisturbed)
        assert_cut(result)
        assert result[4]["resets"][LOST].tolist() == [2 if mode == "SameStep" else 1] * 2
        if mode == "SameStep":
            assert result[4]["_final_obs"].tolist() == result[3].tolist()
        if mode == "Disabled":
            with pytest.raises(cartwheel.EpisodeOverError):
                envs.step(actions())
            envs.reset(options={"reset_mask": np.arange(5) >= 3})
        else:
            result, undisturbed = envs.step(actions()), twin.step(actions())
            assert_others_equal(result, undisturbed)
            assert not result[3].any()
            assert "worker_restarted" not in result[4]
    assert envs.get_attr("pid")[:3] == pids[:3]
    assert set(envs.get_attr("pid")[3:]).isdisjoint(pids)
    twin.close()


def test_a_worker_that_hangs_may_be_killed_and_is_replaced(build):
    envs, twin = build(ROWS), PROCESS(ROWS)
    envs.reset(seed=SEED)
    twin.reset(seed=SEED)
    envs.step_async(actions(3, "hang"))
    deadline, late = time.monotonic() + 30, ""
    while "Rows [3, 4]" not in late:  # the other worker may be slow
        assert time.monotonic() < deadline, late
        with pytest.raises(TimeoutError) as failure:
            envs.step_wait(timeout=0.1)
        late = str(failure.value)
    envs.processes[1].kill()
    result = envs.step_wait()
    assert_others_equal(result, twin.step(actions()))
    assert_cut(result)
    twin.close()


@pytest.mark.parametrize("context", ["fork", *SENDING])
def test_every_start_method_restarts(build, context):
    envs = build(ROWS, context=context)
    envs.reset(seed=SEED)
    assert_cut(envs.step(actions(3, "kill")))
    assert not envs.step(actions())[3].any()


def test_a_control_call_resets_a_new_environment_once(build):
    """Another reset could undo what a call has set."""
    envs = build(ROWS)
    envs.reset(seed=SEED)
    end(envs.get_attr("pid")[3])
    assert envs.get_attr("resets") == (1,) * 5
    envs.set_attr("resets", 7)
    assert envs.get_attr("resets") == (7,) * 5
    assert_cut(envs.step(actions()))


def test_both_workers_may_die_at_once(build):
    envs = build(ROWS, autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    both = np.array([fault("kill"), 0, 0, 0, fault("crash")])
    _, _, _, truncations, infos = envs.step(both)
    assert truncations.all()
    assert infos["worker_restarted"].all()
    assert not envs.step(actions())[3].any()


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_died_between_calls_is_found_by_the_next(build, mode):
    envs = build(ROWS, autoreset_mode=mode)
    envs.reset(seed=SEED)
    end(envs.get_attr("pid")[3])
    assert_cut(envs.step(actions()))
    end(envs.get_attr("pid")[3])
    observations, infos = envs.reset(seed=SEED)
    assert infos["worker_restarted"].tolist() == [False, False, False, True, True]
    np.testing.assert_array_equal(observations[4], FaultyEnv(4).reset(seed=SEED + 4)[0])
    assert not envs.step(actions())[3].any()
    end(envs.get_attr("pid")[3])
    assert len(envs.get_attr("steps")) == 5
    assert_cut(envs.step(actions()))


def test_after_a_partial_reset_the_next_step_truncates_the_other_rows(build):
    envs = build(ROWS, autoreset_mode="Disabled")
    envs.reset(seed=SEED)
    end(envs.get_attr("pid")[3])
    seeds = [None, None, None, 77, None]
    observations, infos = envs.reset(seed=seeds, options={"reset_mask": np.arange(5) == 3})
    np.testing.assert_array_equal(observations[3], FaultyEnv(3).reset(seed=77)[0])
    assert infos["worker_restarted"].tolist() == [False, False, False, True, False]
    assert infos["resets"].tolist()[3:] == [1, 0]
    _, _, _, truncations, infos = envs.step(actions())
    assert truncations.tolist() == [False, False, False, False, True]
    assert infos["worker_restarted"].tolist() == truncations.tolist()


def test_rows_that_would_be_reset_anyway_are_not_truncated(build):
    envs = build([partial(ShortEnv, row) for row in range(5)])
    envs.reset(seed=SEED)
    envs.step(actions())
    assert envs.step(actions())[2].all()
    end(envs.get_attr("pid")[3])
    _, rewards, terminations, truncations, infos = envs.step(actions())
    assert not (terminations | truncations).any()
    assert not rewards.any()
    assert infos["worker_restarted"].tolist() == [False, False, False, True, True]
    assert not envs.step(actions())[2].any()
    assert envs.step(actions())[2].all()


def test_frozen_rows_stay_frozen(build):
    rows = [partial(ShortEnv, row) for row in range(5)]
    envs = build(rows, autoreset_mode="Disabled", on_done="freeze")
    envs.reset(seed=SEED)
    envs.step(actions())
    assert envs.step(actions())[2].all()
    end(envs.get_attr("pid")[3])
    for _ in range(3):
        _, rewards, terminations, truncations, _ = envs.step(actions())
        assert (terminations | truncations).all()
        assert not rewards.any()


def test_a_death_beyond_max_restarts_is_raised_and_closing_works(build):
    envs = build(ROWS, max_restarts=2, autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    for _ in range(2):
        assert_cut(envs.step(actions(4, "kill")))
    with pytest.raises(cartwheel.WorkerDiedError, match="SIGKILL") as failure:
        envs.step(actions(4, "kill"))
    assert failure.value.worker == 1
    assert any("restarted 2 times" in note for note in failure.value.__notes__)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.reset()
    envs.close()


def test_a_reset_that_always_kills_its_worker_ends_after_max_restarts(build):
    envs = build(ROWS, max_restarts=3)
    envs.reset(seed=SEED)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.reset(options={"faults": {4: "kill"}})


class DiesWhenCreatedAgainEnv(FaultyEnv):
    """Removes a file when it is created; exits if there is none."""

    def __init__(self, path):
        super().__init__()
        try:
            path.unlink()
        except FileNotFoundError:
            os._exit(9)


def test_a_worker_that_dies_while_recreating_its_environments_is_given_up(build, tmp_path):
    path = tmp_path / "there"
    path.touch()
    envs = build([FaultyEnv, partial(DiesWhenCreatedAgainEnv, path)], max_restarts=None)
    envs.reset(seed=SEED)
    with pytest.raises(cartwheel.WorkerDiedError, match=r"died during construct.* code 9"):
        envs.step([fault("none"), fault("kill")])


def test_a_new_process_that_dies_after_it_began_to_serve_is_replaced(build, monkeypatch, tmp_path):
    """The process serves, and dies before the caller receives that it serves."""
    path, ready = tmp_path / "there", Worker.ready

    def ready_or_dead(worker):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            worker.serving = True
            # Native code begins to serve as soon as this returns.
            threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGKILL]).start()
            return
        ready(worker)

    monkeypatch.setattr(Worker, "ready", ready_or_dead)  # forked processes inherit it
    envs = build([FaultyEnv, FaultyEnv], context="fork", max_restarts=None)
    envs.reset(seed=SEED)
    path.touch()
    truncations, infos = envs.step([fault("none"), fault("kill")])[3:]
    assert not path.exists()
    assert truncations.tolist() == [False, True]
    assert infos["worker_restarted"].tolist() == [False, True]


def test_a_new_process_that_ends_before_the_pool_watches_it_is_replaced(build, monkeypatch):
    started = []

    def start_and_end(group, worker, *args):
        started.append(replacement.restart(group, worker, *args))
        if len(started) == 1:
            end(started[0])
            group.processes[worker].join()
        return started[-1]

    monkeypatch.setattr(callbacks, "restart", start_and_end)
    envs = build([FaultyEnv, FaultyEnv], max_restarts=None)
    envs.reset(seed=SEED)
    truncations, infos = envs.step([fault("none"), fault("kill")])[3:]
    assert len(started) == 2
    assert truncations.tolist() == [False, True]
    assert infos["worker_restarted"].tolist() == [False, True]


class CannotBeCreatedAgainEnv(FaultyEnv):
    """Removes a file when it is created; raises if there is none."""

    def __init__(self, path):
        super().__init__()
        path.unlink()


def test_an_exception_while_an_environment_is_recreated_is_raised(build, tmp_path):
    path = tmp_path / "there"
    path.touch()
    envs = build([FaultyEnv, partial(CannotBeCreatedAgainEnv, path)])
    envs.reset(seed=SEED)
    with pytest.raises(FileNotFoundError) as failure:
        envs.step([fault("none"), fault("kill")])
    assert any("row 1" in note for note in failure.value.__notes__)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step([0, 0])


def test_rollouts_go_on(build):
    envs = build(ROWS, autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    for _ in range(2):
        rollout = envs.rollout(5)
        steps = [envs.step(actions(4, "kill" if at == 2 else "none")) for at in range(5)]
        np.testing.assert_array_equal(rollout.observations[1:], [step[0] for step in steps])
        np.testing.assert_array_equal(rollout.truncated, [step[3] for step in steps])
        assert rollout.truncated.sum() == 2
    pid = envs.get_attr("pid")[3]
    end(pid)
    rollout = envs.rollout(7)  # of another length: its memory is attached when the death is noticed
    steps = [envs.step(actions()) for _ in range(7)]
    np.testing.assert_array_equal(rollout.observations[1:], [step[0] for step in steps])


def test_every_restart_is_logged(build, caplog):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    pid = envs.get_attr("pid")[4]
    with caplog.at_level(logging.INFO, logger="cartwheel"):
        envs.step(actions(4, "kill"))
    record, later = caplog.records
    for part in ("worker 1", "rows 3 to 4", str(pid), "SIGKILL", "restarting"):
        assert part in record.getMessage()
    assert record.levelno == logging.WARNING
    fields = {"event": "death", "worker": 1, "env_index": [3, 4], "pid": pid, "phase": "step"}
    assert record.cartwheel == fields
    assert later.levelno == logging.INFO
    seconds = later.cartwheel.pop("seconds")
    assert seconds > 0
    pid = envs.get_attr("pid")[4]
    assert later.cartwheel == {"event": "restart", "worker": 1, "env_index": [3, 4], "pid": pid}


@pytest.mark.parametrize("kind", WITHOUT_A_SHAPE)
def test_actions_without_a_fixed_shape_may_be_lost_with_their_worker(build, kind):
    space, write, read = WITHOUT_A_SHAPE[kind]
    envs = build([partial(AddressedEnv, row, space, read) for row in range(5)])
    envs.reset(seed=SEED)
    calm, deadly = [write("none")] * 5, [write("none")] * 4 + [write("kill")]
    for _ in range(2):
        envs.step(calm)
        assert_cut(envs.step(deadly))
    envs.step(calm)
    end(envs.get_attr("pid")[3])
    assert_cut(envs.step(calm))
    assert not envs.step(calm)[3].any()
    assert envs.stats().restarts.tolist() == [0, 3]


class MadeAgainAtAGateEnv(FaultyEnv):
    """Waits at gate 1 when it is created again."""

    def __init__(self, gates):
        super().__init__()
        gates.stand_at(1 if gates.is_reached(2) else 0)
        gates.open(2)
        gates.stand_at(2)


def test_a_restart_that_ctrl_c_interrupted_is_still_that_of_the_first_death(build, caplog, gates):
    """The process that Ctrl-C ended is neither a second death nor a second restart."""
    makers = [FaultyEnv, partial(MadeAgainAtAGateEnv, gates)]
    envs = build(makers, max_restarts=1, autoreset_mode="SameStep")
    envs.reset(seed=SEED)

    def interrupt():
        gates.await_arrival(1)
        os.kill(os.getpid(), signal.SIGINT)

    interrupted = in_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.step([fault("none"), fault("exit 3")])
    interrupted()
    gates.open(1)
    truncations, infos = envs.step_wait(timeout=30)[3:]
    assert truncations.tolist() == [False, True]
    assert infos["worker_restarted"].tolist() == [False, True]
    (death,) = caplog.records
    assert "exited with code 3" in death.getMessage()
    with pytest.raises(cartwheel.WorkerDiedError, match="code 3") as failure:
        envs.step([fault("none"), fault("exit 3")])
    assert any("restarted 1 times" in note for note in failure.value.__notes__)


def test_a_call_is_repeated_after_ctrl_c_interrupted_the_restart_of_its_worker(build, monkeypatch):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    callbacks, restarted = envs._callbacks, []
    restart = callbacks.restart

    def restart_or_raise(*arguments):
        restarted.append(restart(*arguments))
        if len(restarted) == 1:
            raise KeyboardInterrupt
        return restarted[-1]

    monkeypatch.setattr(callbacks, "restart", restart_or_raise)
    pid = envs.processes[1].pid
    os.kill(pid, signal.SIGSTOP)
    envs.call_async("get_wrapper_attr", "row")
    end(pid)
    with pytest.raises(KeyboardInterrupt):
        envs.call_wait(timeout=30)
    assert envs.call_wait(timeout=30) == tuple(range(5))
    assert len(restarted) == 2
