"""Threads that run at the same time, as they do in builds of Python without a GIL."""

import sysconfig
import threading

import gymnasium as gym
import numpy as np
import pytest

from tests.support.executors import INLINE, THREAD
from tests.support.programs import run_program
from tests.support.repetitions import times

pytestmark = pytest.mark.usefixtures("program_server")


def test_threads_that_share_a_wrapper_collect_garbage_and_step_all_end_with_the_gil_as_it_was():
    """A module that needs the GIL would enable it for the whole process."""
    facts = run_program("sharing")
    assert facts == {"gil": not sysconfig.get_config_var("Py_GIL_DISABLED"), "unchanged": True}


def test_a_look_at_environments_refuses_no_call_of_another_thread():
    """A look holds the lock of the pool for a moment, which a call waits for."""
    assert run_program("looking") == {"looked": True}


class GossipingEnv(gym.Env):
    """Another thread changes what its infos show, all the time."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.numbers, self.letters = [], {}
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.gossip)
        self.thread.start()

    def gossip(self):
        while not self.done.is_set():
            self.numbers.append(0.5)
            self.letters["a"] = 1.0
            self.numbers.append(0.5)
            self.letters["b"] = "two"
            self.numbers.clear()
            self.letters.clear()

    def reset(self, **_):
        return np.zeros(1, np.float32), {}

    def step(self, _):
        return np.zeros(1, np.float32), 0.0, False, False, {"said": (self.numbers, self.letters)}

    def close(self):
        self.done.set()
        self.thread.join()


@pytest.mark.parametrize("executor", [INLINE, THREAD], ids=str)
def test_infos_that_another_thread_changes_are_read_at_one_moment(executor):
    envs = executor([GossipingEnv] * 2)
    envs.reset()
    for _ in range(times(40, with_full=200)):
        *_, infos = envs.step([0, 0])
        for numbers, letters in infos["said"]:
            assert numbers in ([], [0.5], [0.5, 0.5])
            assert letters in ({}, {"a": 1.0}, {"a": 1.0, "b": "two"})
    envs.close()
