"""What a worker sent before it died arrives, and is never taken for what its successor sends."""

import array
import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from tests.in_parts import PATIENCE_S
from tests.processes import wait_until_gone

LONG = "x" * 100_000  # more than a shard keeps in shared memory for one row
FINE, RAISE, TELL, HANG, DIE = range(5)
HEADER = struct.Struct("<QQ")


class TalkingEnv(gym.Env):
    """Does what it is told; a reset tells a long story if it has options."""

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return np.zeros(1, np.float32), {"story": LONG + str(os.getpid())} if options else {}

    def step(self, action):
        if action == RAISE:
            raise ValueError("told before the end")
        if action == HANG:
            time.sleep(3600)
        if action == DIE:
            os._exit(3)
        info = {"story": LONG + str(os.getpid())} if action == TELL else {}
        return np.ones(1, np.float32), 1.0, False, False, info


@pytest.fixture(params=[3, 2, 1])
def envs(build_processes, request):
    envs = build_processes(
        [TalkingEnv] * 3, num_workers=1, batch_size=request.param, on_worker_death="restart"
    )
    envs.async_reset()
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    return envs


def end_after_its_message(envs):
    """Kills the worker as soon as one whole message of it waits to be received."""
    end, size = envs._crew.channels[0].end, HEADER.size
    there = array.array("i", [0])
    deadline = time.monotonic() + PATIENCE_S
    while there[0] < size:
        assert time.monotonic() < deadline
        select.select([end], [], [], PATIENCE_S)
        fcntl.ioctl(end.fileno(), termios.FIONREAD, there)
        if there[0] >= HEADER.size:
            size = HEADER.size + HEADER.unpack(peeked(end))[1]
    pid = envs.processes[0].pid
    os.kill(pid, signal.SIGKILL)
    assert not wait_until_gone([pid], timeout_s=PATIENCE_S)
    return pid


def peeked(end):
    with socket.fromfd(end.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as through:
        return through.recv(HEADER.size, socket.MSG_PEEK)


def receive_all(envs):
    """Of each row, its truncation and its story, if it told one; and what was raised."""
    rows, raised = {}, []
    while envs.in_flight:
        try:
            _, _, _, truncations, infos = envs.recv(PATIENCE_S)
        except (ValueError, cartwheel.WorkerDiedError) as error:
            raised.append(error)
            continue
        told = infos.get("_story", np.zeros(len(truncations), np.bool_))
        for place, row in enumerate(infos["env_index"].tolist()):
            story = infos["story"][place] if told[place] else None
            rows[row] = bool(truncations[place]), story
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
    envs.send([TELL, HANG, FINE], [0, 1, 2])
    pid = end_after_its_message(envs)
    rows, raised = receive_all(envs)
    assert not raised
    assert rows == {0: (False, LONG + str(pid)), 1: (True, None), 2: (True, None)}


@pytest.mark.parametrize("first", [RAISE, TELL])
def test_nothing_of_a_successor_is_taken_for_it(envs, first):
    """Whether the worker could send what it announced, before it ended itself, or not."""
    for _ in range(3):
        pid = envs.processes[0].pid
        envs.send([first, DIE, FINE], [0, 1, 2])
        rows, raised = receive_all(envs)
        assert all(story in (None, LONG + str(pid)) for _, story in rows.values())
        assert len(raised) == (first == RAISE)
        assert not wait_until_gone([pid], timeout_s=PATIENCE_S)
        envs.async_reset(options={"tell": True})
        rows, raised = receive_all(envs)
        assert not raised
        successor = envs.processes[0].pid
        assert successor != pid
        assert rows == dict.fromkeys(range(3), (False, LONG + str(successor)))
