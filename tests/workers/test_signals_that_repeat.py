"""Signals that repeat, such as a profiler's, neither stall a wait nor kill a worker."""

import contextlib
import os
import signal
import time

import gymnasium as gym
import numpy as np
import pytest

import cartwheel


class PatientEnv(gym.Env):
    """Sleeps, then dies in its step, or creates a file when it is closed."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, closed):
        self.closed = closed

    def reset(self, **_):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        if action:
            time.sleep(0.3)  # until the caller's sleeps are longer than the interval of the signals
            os.kill(os.getpid(), signal.SIGKILL)
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def close(self):
        time.sleep(0.3)
        self.closed.touch()


@contextlib.contextmanager
def signals(interval_s, handler):
    """Sends a signal to ``handler`` every ``interval_s`` seconds."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, interval_s, interval_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def closed(tmp_path):
    """Files that show which environments were closed."""
    return [tmp_path / str(row) for row in range(2)]


@pytest.fixture
def envs(build_processes, closed):
    return build_processes([lambda path=path: PatientEnv(path) for path in closed])


def test_a_death_is_noticed_between_signals(envs):
    envs.reset()
    with signals(0.0002, lambda *_: None), pytest.raises(cartwheel.WorkerDiedError):
        envs.step([0, 1])


def test_handlers_run_during_the_wait_for_a_step(build_workers, gates):
    envs = build_workers(gates.env_fns(2))
    envs.reset()
    calls = []

    def handler(*_):
        calls.append(None)
        if len(calls) >= 20 and gates.is_reached(1) and gates.is_reached(2):
            gates.open(1, 2)

    with signals(0.001, handler):
        observations, *_ = envs.step([1, 2])
    assert observations.tolist() == [[1], [1]]


def test_a_worker_that_is_closing_is_not_killed(envs, closed):
    envs.reset()
    with signals(0.02, lambda *_: None):
        envs.close(timeout=30)
    assert [path.exists() for path in closed] == [True, True]
