"""Policies for evaluations, and comparisons of their results."""

import functools
import os
import signal

import numpy as np
import pytest
from gymnasium.spaces import Text, Tuple

import cartwheel
from tests.support.environments import TranscriptEnv
from tests.support.executors import EVERY_EXECUTOR, EXECUTORS, INLINE
from tests.support.lotteries import NUM_ENVS, SEED, alone, follow_luck, lotteries, same
from tests.support.repetitions import in_turn

MODES = ["next_step", "same_step", "disabled"]


def every_kind(**others):
    """Builders of every executor, and others, in every mode, and of frozen rows.

    By default each executor has one of the modes, in turn, and two workers.
    """
    executors = {str(executor): executor for executor in EVERY_EXECUTOR} | others
    for number, (name, executor) in enumerate(executors.items()):
        for mode, marks in in_turn(MODES, number):
            build = functools.partial(executor, autoreset_mode=mode)
            if executor in EVERY_EXECUTOR[len(EXECUTORS) :]:
                marks = pytest.mark.slow
            yield pytest.param(build, id=f"{name}-{mode}", marks=marks)
    frozen = functools.partial(INLINE, autoreset_mode="disabled", on_done="freeze")
    yield pytest.param(frozen, id="inline-freeze")


class WordEnv(TranscriptEnv):
    """A ``TranscriptEnv`` whose observation also has a text, which has no fixed shape."""

    observation_space = Tuple([Text(9, charset="abc"), TranscriptEnv.observation_space])

    def observe(self):
        return "abc"[self.t % 3] * self.length, super().observe()


class HopelessEnv(TranscriptEnv):
    """Fails in the second step of each episode."""

    def __init__(self, *, kills=False):
        super().__init__(5)
        self.kills = kills

    def step(self, action):
        if self.t == 1:
            if self.kills:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ArithmeticError("lost a wheel")
        return super().step(action)


def ones(observations):
    return np.ones(len(observations), np.int64)


def kept_time(num_envs):
    """A recurrent policy that fails unless ``first`` marks every first observation."""
    clocks = np.full(num_envs, -1)

    def tell(observations, rows, first):
        clocks[rows] = np.where(first, 0, clocks[rows] + 1)
        assert clocks[rows].tolist() == observations[:, 0].tolist()
        rows[:], first[:] = 0, False  # the policy may overwrite both
        return np.ones(len(observations), np.int64)

    return tell


@functools.cache
def in_lockstep(episodes):
    """The evaluation of lotteries in lockstep."""
    envs = INLINE(lotteries(NUM_ENVS))
    evaluation = cartwheel.evaluate(envs, follow_luck, episodes_per_env=episodes, seed=SEED)
    envs.close()
    same(evaluation, alone(lotteries(), follow_luck, episodes, SEED))
    return evaluation


def assert_equal(one, two):
    """Both evaluations have the same bits in everything that they hold."""
    for name, value in vars(one).items():
        other = vars(two)[name]
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (other.dtype, other.shape), name
            assert value.tobytes() == other.tobytes(), name
        else:
            assert value == other, name


def assert_at_rest(envs):
    """Nothing is in flight, and rows are received in the usual order."""
    assert envs.unwrapped.in_flight == []
    assert envs.unwrapped.recv_order == "sent"
