"""With ``order="free"`` failures count as in lockstep, and exceptions leave nothing in flight."""
# ruff: noqa: ARG001, ARG005 (signatures are Gymnasium's)

import itertools
import os
import signal
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.evaluations import assert_at_rest, assert_equal, in_lockstep, kept_time, ones
from tests.support.executors import INLINE, PROCESS, THREAD
from tests.support.interrupts import ANY_MOMENT, interrupted_at
from tests.support.lotteries import (
    EPISODES,
    NUM_ENVS,
    SEED,
    LotteryEnv,
    follow_luck,
    lotteries,
)
from tests.support.repetitions import times

MODES = ["next_step", "same_step", "disabled"]
FREE = {"order": "free"}


class StumblingEnv(LotteryEnv):
    """Raises in a twentieth of its steps."""

    def step(self, action):
        if self.np_random.random() < 1 / 20:
            raise ArithmeticError("lost a wheel")
        return super().step(action)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_failures_are_dropped_and_counted_as_in_lockstep(build_with, executor, mode):
    envs = build_with(
        executor,
        [partial(StumblingEnv, 0)] * NUM_ENVS,
        autoreset_mode=mode,
        on_error="restart",
        max_restarts=None,
    )
    lockstep, free = (
        cartwheel.evaluate(envs, follow_luck, episodes_per_env=20, seed=SEED, order=order)
        for order in ("lockstep", "free")
    )
    assert_equal(free, lockstep)
    assert len(set(free.failures.tolist())) > 2


class KillingEnv(TranscriptEnv):
    """If a file exists, removes it and kills its process, in the third step or in a reset."""

    def __init__(self, length, path, where):
        super().__init__(length)
        self.path, self.where = path, where

    def reset(self, *, seed=None, options=None):
        self._may_die("reset", is_time=self.episodes > 0)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self._may_die("step", is_time=self.t == 2)
        return super().step(action)

    def _may_die(self, where, *, is_time):
        if is_time and where == self.where and self.path.exists():
            self.path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("where", ["step", "reset"])
@pytest.mark.parametrize("mode", MODES)
def test_episodes_that_died_with_their_worker_are_played_again(build_with, mode, where, tmp_path):
    path = tmp_path / "kill"
    path.touch()
    lengths = [2, 4, 3, 5, 6]  # rows 3 and 4 share a worker
    envs = build_with(
        PROCESS,
        [*transcripts(*lengths[:4]), partial(KillingEnv, 6, path, where)],
        autoreset_mode=mode,
        on_worker_death="restart",
    )
    evaluation = cartwheel.evaluate(envs, kept_time(5), episodes_per_env=3, recurrent=True, **FREE)
    assert not path.exists()
    assert evaluation.lengths.tolist() == [[length] * 3 for length in lengths]
    assert evaluation.returns.tolist() == evaluation.lengths.tolist()
    assert evaluation.terminated.all()
    assert not evaluation.failures[:3].any()
    if where == "step":
        assert evaluation.failures[4] == 1
    assert_at_rest(envs)


class HopelessEnv(TranscriptEnv):
    """Fails in the second step of each episode."""

    def step(self, action):
        if self.t == 1:
            raise ArithmeticError("lost a wheel")
        return super().step(action)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_always_fails_is_given_up(build_with, mode):
    for limit, error, words in (
        (4, ArithmeticError, "lost a wheel"),
        (None, RuntimeError, "row 1 failed in 100 episodes in a row.*lost a wheel"),
    ):
        envs = build_with(
            THREAD,
            [*transcripts(3), partial(HopelessEnv, 5), *transcripts(3, 4)],
            autoreset_mode=mode,
            on_error="restart",
            max_restarts=limit,
        )
        with pytest.raises(error, match=words):
            cartwheel.evaluate(envs, ones, episodes_per_env=300, **FREE)
        assert_at_rest(envs)
        envs.reset()


class RaisesOnce:
    """Follows luck, but raises in one call, or answers with too few or with unfit actions."""

    def __init__(self, how, call):
        self.how, self.call, self.calls = how, call, 0

    def __call__(self, observations):
        self.calls += 1
        actions = follow_luck(observations)
        if self.calls != self.call:
            return actions
        if self.how == "raise":
            raise ZeroDivisionError
        return actions[:-1] if self.how == "few" else actions[:, :1]


@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_if_the_policy_raises_nothing_stays_in_flight(build_with, executor, mode):
    envs = build_with(executor, lotteries(), autoreset_mode=mode)
    for how, error, call in (
        ("raise", ZeroDivisionError, 1),
        ("raise", ZeroDivisionError, 60),
        ("few", ValueError, 2),
        ("unfit", ValueError, 5),
    ):
        policy = RaisesOnce(how, call)
        with pytest.raises(error):
            cartwheel.evaluate(envs, policy, episodes_per_env=EPISODES, seed=3, **FREE)
        assert policy.calls == call
        assert_at_rest(envs)
    evaluation = cartwheel.evaluate(envs, follow_luck, episodes_per_env=EPISODES, seed=SEED, **FREE)
    assert_equal(evaluation, in_lockstep(EPISODES))


@ANY_MOMENT
@pytest.mark.parametrize("mode", MODES)
def test_after_ctrl_c_at_any_line_environments_can_be_evaluated_again(build_with, mode):
    files = ("evaluation/evaluate", "evaluation/stepping", "evaluation/episode_counter")
    envs = build_with(THREAD, transcripts(1, 4, 2), autoreset_mode=mode)
    evaluate = partial(cartwheel.evaluate, envs, ones, episodes_per_env=2, **FREE)
    for line in itertools.count(1, times(19, with_full=3)):
        came = interrupted_at(line, evaluate, files)
        assert envs.in_flight == []
        assert evaluate().lengths.tolist() == [[1, 1], [4, 4], [2, 2]]
        if not came:
            break
    assert line > 100


def test_an_exception_waits_for_a_blocked_row_no_longer_than_the_time_out(build_with, gates):
    envs = build_with(THREAD, gates.env_fns(2), timeout=60)
    calls = []

    def policy(observations, rows, first):
        calls.append(rows.tolist())
        if len(calls) > 3:
            assert [0] not in calls
            envs._callbacks.timeout = 0.3
            raise ZeroDivisionError
        return (rows == 0).astype(np.int64)

    with pytest.raises(ZeroDivisionError):
        cartwheel.evaluate(envs, policy, recurrent=True, **FREE)
    assert envs.in_flight == [0]
    gates.open(1)
    envs._callbacks.timeout = 60
    envs.reset()
    assert envs.in_flight == []


@pytest.mark.parametrize("own", ["sent", "done"])
def test_rows_are_received_afterwards_in_the_order_of_before(build_with, own):
    envs = build_with(PROCESS, transcripts(2, 3))
    envs.recv_order = own
    cartwheel.evaluate(envs, ones, **FREE)
    assert envs.recv_order == own
    with pytest.raises(ZeroDivisionError):
        cartwheel.evaluate(envs, lambda observations: 1 / 0, **FREE)
    assert envs.recv_order == own
