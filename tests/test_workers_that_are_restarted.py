"""With ``on_worker_death="restart"`` a dead worker costs its rows an episode and nothing else."""

import contextlib
import logging
import os
import random
import signal
import threading
import time
from collections import Counter
from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cartwheel
from tests.executors import PROCESS
from tests.faulty import FaultyEnv, fault
from tests.processes import wait_until_gone

MODES = ["NextStep", "SameStep", "Disabled"]
ROWS = [partial(FaultyEnv, row) for row in range(5)]  # two workers: rows 0 to 2 and rows 3 to 4
LOST, OTHERS = [3, 4], [0, 1, 2]
SEED = 5


def actions(row=None, name="none"):
    return np.array([fault(name) if row == other else fault("none") for other in range(5)])


def end(pid):
    """Ends a worker and waits until it is gone."""
    os.kill(pid, signal.SIGKILL)
    assert not wait_until_gone([pid], timeout_s=5)


def assert_others_equal(result, undisturbed):
    for got, expected in zip(result[:4], undisturbed[:4], strict=True):
        np.testing.assert_array_equal(got[OTHERS], expected[OTHERS])


def assert_cut(result):
    """The lost rows, and they alone, were truncated because of a restart."""
    _, rewards, terminations, truncations, infos = result
    assert truncations.tolist() == [False, False, False, True, True]
    assert not terminations.any()
    assert rewards[LOST].tolist() == [0.0, 0.0]
    assert infos["worker_restarted"].tolist() == truncations.tolist()
    assert infos["_worker_restarted"].tolist() == truncations.tolist()


@pytest.fixture
def build(build_processes):
    return partial(build_processes, on_worker_death="restart")


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
    with pytest.raises(TimeoutError, match=r"Rows \[3, 4\]"):
        envs.step_wait(timeout=0.1)
    envs.processes[1].kill()
    result = envs.step_wait()
    assert_others_equal(result, twin.step(actions()))
    assert_cut(result)
    twin.close()


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_every_start_method_starts_anew(build, context):
    envs = build(ROWS, context=context)
    envs.reset(seed=SEED)
    assert_cut(envs.step(actions(3, "kill")))
    assert not envs.step(actions())[3].any()


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


def test_a_partial_reset_leaves_it_to_the_next_step_to_tell_of_the_other_rows(build):
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


class ShortEnv(FaultyEnv):
    """Episodes of two steps."""

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        self.left -= 1
        return observation, reward, self.left == 0, truncated, info

    def reset(self, *, seed=None, options=None):
        self.left = 2
        return super().reset(seed=seed, options=options)


def test_rows_that_were_to_be_reset_anyway_are_not_truncated(build):
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


class TellingEnv(ShortEnv):
    """Row 2 hangs in a step or a reset without a seed, the ``last`` of them, and says so."""

    def __init__(self, row, path, last):
        super().__init__(row)
        self.path, self.last = path, last

    def tell(self):
        self.last -= 1
        if self.row == 2 and self.last == 0:
            self.path.touch()
            time.sleep(3600)

    def reset(self, *, seed=None, options=None):
        if seed is None:
            self.tell()
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.tell()
        return super().step(action)


@pytest.mark.parametrize("steps", [2, 3])
def test_what_was_done_but_not_received_is_remembered(build_processes, tmp_path, steps):
    """The worker dies when rows 0 and 1 are over, or reset again, and nobody has received that."""
    path = tmp_path / "hangs"
    envs = build_processes(
        [partial(TellingEnv, row, path, steps) for row in range(4)],
        num_workers=1,
        batch_size=3,
        on_worker_death="restart",
    )
    envs.async_reset(seed=SEED)
    envs.recv(timeout=20)
    envs.recv(timeout=20)
    for step in range(1, steps + 1):
        envs.send([0, 0, 0], [0, 1, 2])
        if step < steps:
            envs.recv(timeout=20)
    # The worker takes one row after the other: when it hangs in the last, the others are done.
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
    end(envs.processes[0].pid)
    _, _, terminations, truncations, infos = envs.recv(timeout=20)
    assert infos["env_index"].tolist() == [0, 1, 2]
    assert terminations[:2].tolist() == [steps == 2] * 2
    assert not truncations[:2].any()
    assert not infos.get("worker_restarted", np.zeros(3))[:2].any()
    envs.send([0, 0], [0, 1])
    _, _, terminations, truncations, infos = envs.recv(timeout=20)
    assert infos["worker_restarted"].all()
    assert not terminations.any()
    assert truncations.tolist() == [steps == 3] * 2, "an episode that had begun was lost"


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


def test_what_is_beyond_the_budget_is_raised_and_closing_works(build):
    envs = build(ROWS, max_restarts=2, autoreset_mode="SameStep")
    envs.reset(seed=SEED)
    for _ in range(2):
        assert_cut(envs.step(actions(4, "kill")))
    with pytest.raises(cartwheel.WorkerDiedError, match="SIGKILL") as failure:
        envs.step(actions(4, "kill"))
    assert failure.value.worker == 1
    assert any("started anew 2 times" in note for note in failure.value.__notes__)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.reset()
    envs.close()


def test_a_reset_that_always_kills_ends_with_the_budget(build):
    envs = build(ROWS, max_restarts=3)
    envs.reset(seed=SEED)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.reset(options={"faults": {4: "kill"}})


class DiesWhenMadeAgainEnv(FaultyEnv):
    """Can be made where a file is, which it removes."""

    def __init__(self, path):
        super().__init__()
        try:
            path.unlink()
        except FileNotFoundError:
            os._exit(9)


def test_a_worker_that_cannot_make_its_environments_again_is_given_up(build, tmp_path):
    path = tmp_path / "there"
    path.touch()
    envs = build([FaultyEnv, partial(DiesWhenMadeAgainEnv, path)], max_restarts=None)
    envs.reset(seed=SEED)
    with pytest.raises(cartwheel.WorkerDiedError, match=r"died during construct.* code 9"):
        envs.step([fault("none"), fault("kill")])


class CannotBeMadeAgainEnv(FaultyEnv):
    """Raises where a file is not, which it removes."""

    def __init__(self, path):
        super().__init__()
        path.unlink()


def test_an_environment_that_cannot_be_made_again_is_raised(build, tmp_path):
    path = tmp_path / "there"
    path.touch()
    envs = build([FaultyEnv, partial(CannotBeMadeAgainEnv, path)])
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
        np.testing.assert_array_equal(rollout.truncations, [step[3] for step in steps])
        assert rollout.truncations.sum() == 2
    pid = envs.get_attr("pid")[3]
    end(pid)
    rollout = envs.rollout(7)  # of another length: attached while the worker is found dead
    steps = [envs.step(actions()) for _ in range(7)]
    np.testing.assert_array_equal(rollout.observations[1:], [step[0] for step in steps])


def test_every_restart_is_logged(build, caplog):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    pid = envs.get_attr("pid")[4]
    with caplog.at_level(logging.WARNING, logger="cartwheel"):
        envs.step(actions(4, "kill"))
    [record] = caplog.records
    for part in ("worker 1", "rows 3 to 4", str(pid), "SIGKILL", "started anew"):
        assert part in record.getMessage()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_size", [2, 5])
def test_every_row_that_was_sent_is_received_once(build, mode, batch_size):
    """Rows in flight of a worker that dies come back truncated, each of them once."""
    envs = build(ROWS, autoreset_mode=mode, batch_size=batch_size, max_restarts=None)
    envs.async_reset(seed=SEED)
    received, sent, cut = Counter(), Counter(range(5)), 0
    for turn in range(60):
        _, _, _, truncations, infos = envs.recv()
        rows = infos["env_index"]
        received.update(rows.tolist())
        assert received <= sent
        restarted = infos.get("worker_restarted", np.zeros(len(rows), bool))
        cut += int(restarted.sum())
        assert not (truncations & ~restarted).any()
        again = truncations if mode == "Disabled" else np.zeros_like(truncations)
        if again.any():
            envs.async_reset(options={"env_index": rows[again]})
        if not again.all():
            killing = turn % 7 == 3
            faults = np.full(len(rows), fault("kill") if killing else fault("none"))[~again]
            envs.send(faults, rows[~again])
        sent.update(rows.tolist())
    while envs.in_flight:
        *_, infos = envs.recv()
        received.update(infos["env_index"].tolist())
    assert received == sent
    assert cut > 0


@settings(max_examples=6)
@given(st.integers(0, 999), st.sampled_from(MODES), st.sampled_from([1, 3, 6]))
def test_workers_that_are_killed_at_any_moment_lose_nothing(seed, mode, batch_size):
    """Against a count: every row that was sent comes back once, whoever is killed meanwhile."""
    rows = [partial(FaultyEnv, row) for row in range(6)]
    envs = cartwheel.VectorEnv(
        rows,
        executor="process",
        num_workers=3,
        autoreset_mode=mode,
        batch_size=batch_size,
        on_done="freeze",
        on_worker_death="restart",
        max_restarts=None,
    )
    done, draw = threading.Event(), random.Random(seed)

    def kill():
        while not done.wait(draw.uniform(0.02, 0.1)):
            with contextlib.suppress(ValueError):  # it is being replaced
                draw.choice(envs.processes).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    received, sent, restarts = Counter(), Counter(range(6)), 0
    try:
        envs.async_reset(seed=SEED)
        while restarts < 8:
            *_, infos = envs.recv(timeout=20)
            index = infos["env_index"]
            received.update(index.tolist())
            restarts += int(np.sum(infos.get("worker_restarted", 0)))
            envs.send(np.zeros(len(index), np.int64), index)
            sent.update(index.tolist())
        while envs.in_flight:
            *_, infos = envs.recv(timeout=20)
            received.update(infos["env_index"].tolist())
    except cartwheel.WorkerDiedError as error:
        if error.phase != "construct":  # three times in a row
            raise
        received = sent
    finally:
        done.set()
        killer.join()
        envs.close()
    assert received == sent
