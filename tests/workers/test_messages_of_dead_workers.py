"""Messages of a worker that died are received, and not mistaken for its successor's."""

import array
import fcntl
import os
import signal
import socket
import struct
import termios
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from tests.support.in_parts import PATIENCE_S
from tests.support.processes import sockets, wait_until_gone

LONG = "x" * 100_000  # more than a shard keeps in shared memory for one row
FINE, RAISE, REPORT, HANG, DIE = range(5)
HEADER = struct.Struct("=QQQ")


class ObedientEnv(gym.Env):
    """Does what its action says; a reset with options returns a long info, as `REPORT` does."""

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return np.zeros(1, np.float32), {"text": LONG + str(os.getpid())} if options else {}

    def step(self, action):
        if action == RAISE:
            raise ValueError("raised before the end")
        if action == HANG:
            time.sleep(3600)
        if action == DIE:
            os._exit(3)
        info = {"text": LONG + str(os.getpid())} if action == REPORT else {}
        return np.ones(1, np.float32), 1.0, False, False, info


@pytest.fixture(params=[3, 2, 1])
def envs(build_processes, request):
    envs = build_processes(
        [ObedientEnv] * 3, num_workers=1, batch_size=request.param, on_worker_death="restart"
    )
    envs.send_reset()
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    return envs


def end_after_its_message(envs):
    """Kills the worker as soon as one of its messages has arrived completely."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(map(has_whole_message, sockets())):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    pid = envs.processes[0].pid
    os.kill(pid, signal.SIGKILL)
    assert not wait_until_gone([pid], timeout_s=PATIENCE_S)
    return pid


def has_whole_message(end):
    there = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, there)
    if there[0] < HEADER.size:
        return False
    with socket.fromfd(end, socket.AF_UNIX, socket.SOCK_STREAM) as through:
        _, length, _ = HEADER.unpack(through.recv(HEADER.size, socket.MSG_PEEK))
    return there[0] >= HEADER.size + length


def receive_all(envs):
    """Each row's truncation flag and its text, ``"lost"`` or ``None``; and the exceptions."""
    rows, raised = {}, []
    while envs.in_flight:
        try:
            _, _, _, truncations, infos = envs.recv(PATIENCE_S)
        except (ValueError, cartwheel.WorkerDiedError) as error:
            raised.append(error)
            continue
        none = np.zeros(len(truncations), np.bool_)
        reported, lost = infos.get("_text", none), infos.get("infos_lost", none)
        for place, row in enumerate(infos["env_index"].tolist()):
            text = infos["text"][place] if reported[place] else "lost" if lost[place] else None
            rows[row] = bool(truncations[place]), text
    return rows, raised


def test_an_exception_that_was_sent_arrives_after_the_death(envs):
    envs.send([RAISE, HANG, FINE], [0, 1, 2])
    end_after_its_message(envs)
    rows, raised = receive_all(envs)
    assert [type(error) for error in raised] == [ValueError]
    assert "row 0" in raised[0].__notes__[0]
    if envs.batch_size == 1:
        assert rows == {1: (True, None), 2: (True, None)}


def test_infos_that_were_sent_arrive_after_the_death(envs):
    envs.send([REPORT, HANG, FINE], [0, 1, 2])
    pid = end_after_its_message(envs)
    rows, raised = receive_all(envs)
    assert not raised
    assert rows == {0: (False, LONG + str(pid)), 1: (True, None), 2: (True, None)}


@pytest.mark.parametrize("first", [RAISE, REPORT])
def test_messages_of_a_successor_are_not_mistaken_for_those_of_a_dead_worker(envs, first):
    """Whether or not the worker could send what it had announced before it exited."""
    for _ in range(3):
        pid = envs.processes[0].pid
        envs.send([first, DIE, FINE], [0, 1, 2])
        rows, raised = receive_all(envs)
        if first == REPORT:
            assert rows[0] in [(False, LONG + str(pid)), (False, "lost")]
        assert all(rows[row] == (True, None) for row in rows if row > 0)
        assert len(raised) == (first == RAISE)
        assert not wait_until_gone([pid], timeout_s=PATIENCE_S)
        envs.send_reset(options={"report": True})
        rows, raised = receive_all(envs)
        assert not raised
        successor = envs.processes[0].pid
        assert successor != pid
        assert rows == dict.fromkeys(range(3), (False, LONG + str(successor)))


class SucceedingEnv(gym.Env):
    """Always succeeds, with long infos; row 1 kills its worker once, after row 0 is done."""

    observation_space, action_space = Box(-np.inf, np.inf, (2,)), Discrete(2)

    def __init__(self, row, path):
        self.row, self.path = row, path

    def observe(self):
        return np.array([self.row, self.steps], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self.observe(), {}

    def step(self, _):
        self.steps += 1
        over = self.steps == (1 if self.row == 2 else 3)
        if over and self.row == 1 and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.observe(), 1.0, over, False, {"is_success": True, "log": LONG} if over else {}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_an_episode_whose_infos_were_lost_is_evaluated_again(build_processes, tmp_path, mode):
    """Timing decides whether infos are lost; every episode must succeed in any case."""
    for attempt in range(5):
        envs = build_processes(
            [partial(SucceedingEnv, row, tmp_path / f"{attempt}") for row in range(3)],
            num_workers=1,
            autoreset_mode=mode,
            on_worker_death="restart",
        )
        evaluation = cartwheel.evaluate(
            envs, lambda seen: np.zeros(len(seen), int), episodes_per_env=1, progress=False
        )
        assert evaluation.success_at_end.all()
        assert evaluation.lengths.tolist() == [[3], [3], [1]]
        assert evaluation.failures[1] == 1


class DiesWhenItIsReset(SucceedingEnv):
    """Row 1 kills its worker in the reset after an episode."""

    def reset(self, *, seed=None, options=None):
        if self.row == 1 and hasattr(self, "steps"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reset(seed=seed, options=options)

    def step(self, _):
        self.steps += 1
        return self.observe(), 1.0, self.row == 1 and self.steps == 3, False, {}


@pytest.mark.parametrize("num_steps", [3, 4])
def test_a_death_in_a_masked_reset_changes_no_transition(build_processes, num_steps):
    envs = build_processes(
        [partial(DiesWhenItIsReset, row, None) for row in range(2)],
        num_workers=1,
        autoreset_mode="Disabled",
        on_worker_death="restart",
    )
    collector = cartwheel.Collector(
        envs, lambda seen: np.zeros(len(seen), int), num_steps=num_steps
    )
    rollout = collector.collect()
    transitions = rollout.transitions()
    own = transitions.observations[:, 0] == 0
    np.testing.assert_array_equal(transitions.next_observations[own], [[0, 1], [0, 2], [0, 3]])
    assert rollout.valid[:, 0].tolist() == [True, True, True, False][:num_steps]
