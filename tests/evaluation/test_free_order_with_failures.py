"""With ``order="free"`` failures count as in lockstep, and exceptions leave nothing in flight."""
# ruff: noqa: ARG001, ARG005 (signatures are Gymnasium's)

import itertools
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.environments import transcripts
from tests.support.evaluations import HopelessEnv, assert_at_rest, assert_equal, in_lockstep, ones
from tests.support.executors import INLINE, PROCESS, THREAD
from tests.support.interrupts import ANY_MOMENT, interrupted_at
from tests.support.lotteries import EPISODES, NUM_ENVS, SEED, LotteryEnv, follow_luck, lotteries
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


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_always_fails_is_given_up(build_with, mode):
    for limit, error, words in (
        (4, ArithmeticError, "lost a wheel"),
        (None, RuntimeError, "row 1 failed in 100 episodes in a row.*lost a wheel"),
    ):
        envs = build_with(
            THREAD,
            [*transcripts(3), HopelessEnv, *transcripts(3, 4)],
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
    assert envs.recv_order == "sent"
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
