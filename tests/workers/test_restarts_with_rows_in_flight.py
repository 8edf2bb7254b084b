"""With ``on_worker_death="restart"``, no row in flight is lost or received twice."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import cartwheel
from tests.support.faulty import FaultyEnv, fault
from tests.support.random_examples import given, settings, st
from tests.support.restarts import (
    MODES,
    ROWS,
    SEED,
    WITHOUT_A_SHAPE,
    AddressedEnv,
    ShortEnv,
    actions,
    end,
)


@pytest.fixture
def build(build_processes):
    return partial(build_processes, on_worker_death="restart")


class HangingEnv(ShortEnv):
    """Row 2 creates a file, then hangs in the ``last`` of its steps and unseeded resets."""

    def __init__(self, row, path, last):
        super().__init__(row)
        self.path, self.last = path, last

    def count_down(self):
        self.last -= 1
        if self.row == 2 and self.last == 0:
            self.path.touch()
            time.sleep(3600)

    def reset(self, *, seed=None, options=None):
        if seed is None:
            self.count_down()
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.count_down()
        return super().step(action)


def wait_until_it_hangs(path):
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("steps", [2, 3])
def test_results_that_were_not_yet_received_survive_the_worker(build_processes, tmp_path, steps):
    """The worker dies after rows 0 and 1 ended, or were reset, and before that was received."""
    path = tmp_path / "hangs"
    envs = build_processes(
        [partial(HangingEnv, row, path, steps) for row in range(4)],
        num_workers=1,
        batch_size=3,
        on_worker_death="restart",
    )
    envs.send_reset(seed=SEED)
    envs.recv(timeout=20)
    envs.recv(timeout=20)
    for step in range(1, steps + 1):
        envs.send([0, 0, 0], [0, 1, 2])
        if step < steps:
            envs.recv(timeout=20)
    # The worker steps one row after the other: when it hangs in the last, the others are done.
    wait_until_it_hangs(path)
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
    assert truncations.tolist() == [steps == 3] * 2, "only an episode that had begun is lost"


class FirstResetHangs(gym.Env):
    """The first reset creates a file and hangs; later resets return their seed."""

    observation_space = action_space = Discrete(2)

    def __init__(self, path):
        self.path = path

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        if not self.path.exists():
            self.path.touch()
            time.sleep(3600)
        return 0, {"seed": seed}


def test_a_restarted_worker_does_not_repeat_a_reset_that_was_refused(build, tmp_path):
    path = tmp_path / "hangs"
    envs = build([partial(FirstResetHangs, path)])
    envs.send_reset(seed=SEED)
    wait_until_it_hangs(path)
    with pytest.raises(gym.error.AlreadyPendingCallError):
        envs.send_reset(seed=SEED + 1)
    end(envs.processes[0].pid)
    assert envs.recv(timeout=20)[4]["seed"].tolist() == [SEED]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_size", [2, 5])
def test_every_row_that_was_sent_is_received_once(build, mode, batch_size):
    """When a worker dies, each of its rows in flight is received once, truncated."""
    envs = build(ROWS, autoreset_mode=mode, batch_size=batch_size, max_restarts=None)
    envs.send_reset(seed=SEED)
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
            envs.send_reset(options={"env_index": rows[again]})
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


@pytest.mark.parametrize("batch_size", [2, 5])
@pytest.mark.parametrize("kind", WITHOUT_A_SHAPE)
def test_sent_actions_without_a_fixed_shape_may_be_lost_too(build, kind, batch_size):
    space, write, read = WITHOUT_A_SHAPE[kind]
    rows = [partial(AddressedEnv, row, space, read) for row in range(5)]
    envs = build(rows, batch_size=batch_size)
    envs.send_reset(seed=SEED)
    while envs.in_flight:
        envs.recv(timeout=20)
    envs.send([write("none")] * 5, range(5))
    received, sent, cut = Counter(), Counter(range(5)), Counter()
    while len(cut) < 2:
        _, _, _, truncations, infos = envs.recv(timeout=20)
        index = infos["env_index"]
        received.update(index.tolist())
        assert received <= sent
        cut.update(index[truncations].tolist())
        deadly = 3 in index and not cut
        envs.send([write("kill" if deadly and row == 3 else "none") for row in index], index)
        sent.update(index.tolist())
    while envs.in_flight:
        received.update(envs.recv()[4]["env_index"].tolist())
    assert received == sent
    assert cut.keys() == {3, 4}


def test_a_row_whose_action_was_a_message_to_the_dead_worker_is_cut(build):
    """Actions whose dtype differs from that of those in flight are not in shared memory."""
    envs = build(ROWS, batch_size=2)
    envs.send_reset(seed=SEED)
    while envs.in_flight:
        envs.recv(timeout=20)
    envs.send(np.array([fault("none")], np.int64), [0])
    envs.send(np.array([fault("kill")], np.int32), [3])
    _, _, _, truncations, infos = envs.recv(timeout=20)
    is_dead = infos["env_index"] == 3
    assert sorted(infos["env_index"]) == [0, 3]
    assert truncations.tolist() == infos["worker_restarted"].tolist() == is_dead.tolist()


def count_while_workers_are_killed(seed, mode, batch_size):
    """The counts of receives and of sends of each row."""
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
    done, gone_on, draw = threading.Event(), threading.Event(), random.Random(seed)

    def kill():
        # One kill per received batch: if starts are slow, three in a row must not be killed.
        while gone_on.wait() and not done.wait(draw.uniform(0, 0.1)):
            gone_on.clear()
            with contextlib.suppress(ValueError, AttributeError):  # the worker is being replaced
                draw.choice(envs.processes).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    received, sent, restarts = Counter(), Counter(range(6)), 0
    try:
        envs.send_reset(seed=SEED)
        while restarts < 8:
            *_, infos = envs.recv(timeout=60)
            gone_on.set()
            index = infos["env_index"]
            received.update(index.tolist())
            restarts += int(np.sum(infos.get("worker_restarted", 0)))
            envs.send(np.zeros(len(index), np.int64), index)
            sent.update(index.tolist())
        while envs.in_flight:
            *_, infos = envs.recv(timeout=60)
            received.update(infos["env_index"].tolist())
    finally:
        done.set()
        gone_on.set()
        killer.join()
        envs.close()
    return received, sent


@pytest.mark.slow
@settings(max_examples=6)
@given(st.integers(0, 999), st.sampled_from(MODES), st.sampled_from([1, 3, 6]))
def test_workers_that_are_killed_at_any_moment_lose_nothing(seed, mode, batch_size):
    """Every row that was sent is received exactly once, whichever workers are killed."""
    received, sent = count_while_workers_are_killed(seed, mode, batch_size)
    assert received == sent


def interrupt_the_restart_of_worker_1(envs, monkeypatch):
    """Ctrl-C comes in the first restart, of worker 1; returns the list of the restarted workers."""
    group, starts = envs._callbacks._group, []

    def start_process(worker):
        starts.append(worker)
        if starts == [1]:
            raise KeyboardInterrupt
        return start(worker)

    start = group.start_process
    monkeypatch.setattr(group, "start_process", start_process)
    return starts


def test_a_restart_that_ctrl_c_interrupted_is_repeated_when_another_worker_dies(build, monkeypatch):
    envs = build(ROWS)
    envs.reset(seed=SEED)
    pids = [process.pid for process in envs.processes]
    starts = interrupt_the_restart_of_worker_1(envs, monkeypatch)
    envs.send(actions(), range(5))
    envs.recv()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # so that neither has done anything when it dies
    envs.send(actions(), range(5))
    end(pids[1])
    with pytest.raises(KeyboardInterrupt):
        envs.recv(timeout=30)
    end(pids[0])
    truncations, infos = envs.recv(timeout=30)[3:]
    assert truncations.tolist() == [True] * 5
    assert infos["worker_restarted"].tolist() == [True] * 5
    assert starts in ([1, 0, 1], [1, 1, 0])


@pytest.mark.parametrize("batch_size", [2, 5])
def test_rows_that_are_sent_after_ctrl_c_interrupted_a_restart_arrive(
    build, monkeypatch, batch_size
):
    envs = build(ROWS, batch_size=batch_size)
    envs.send_reset(seed=SEED)
    while envs.in_flight:
        envs.recv(timeout=30)
    starts = interrupt_the_restart_of_worker_1(envs, monkeypatch)
    pid = envs.processes[1].pid
    os.kill(pid, signal.SIGSTOP)  # so that it has done nothing when it dies
    envs.send(actions()[:1], [4])
    end(pid)
    with pytest.raises(KeyboardInterrupt):
        envs.recv(timeout=30)
    envs.send(actions()[:4], range(4))
    received = []
    while envs.in_flight:
        received += envs.recv(timeout=30)[-1]["env_index"].tolist()
    assert sorted(received) == list(range(5))
    assert starts == [1, 1]
