"""With ``order="free"`` no row waits for another, and the answers are those of ``"lockstep"``."""
# ruff: noqa: ARG001 (signatures are Gymnasium's)

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cartwheel
from cartwheel import mujoco, wrappers
from cartwheel.evaluation import stepping
from tests.support.cases import lean
from tests.support.environments import Untouched, transcripts
from tests.support.evaluations import (
    MODES,
    WordEnv,
    assert_at_rest,
    assert_equal,
    every_kind,
    in_lockstep,
    kept_time,
    ones,
)
from tests.support.executors import EVERY_NATIVE, INLINE, PROCESS, THREAD
from tests.support.gates import GatedEnv
from tests.support.lotteries import EPISODES, NUM_ENVS, SEED, follow_luck, lotteries

KINDS = list(every_kind())
FREE = {"order": "free"}


@pytest.mark.parametrize("build", KINDS)
def test_every_episode_is_that_of_lockstep(build_with, build):
    envs = build_with(build, lotteries())
    for episodes in (1, 2):
        evaluation = cartwheel.evaluate(
            envs, follow_luck, episodes_per_env=episodes, seed=SEED, **FREE
        )
        assert_equal(evaluation, in_lockstep(episodes))
        assert_at_rest(envs)
    # The object goes on like one that was evaluated in lockstep.
    again = cartwheel.evaluate(envs, follow_luck, seed=SEED)
    assert_equal(again, in_lockstep(1))


@pytest.mark.parametrize("build", EVERY_NATIVE, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_every_episode_of_native_rows_is_that_of_lockstep(build_with, build, mode):
    for num_envs in (1, 7):
        envs = build_with(
            cartwheel.NativeVectorEnv,
            "CartPole-v1",
            num_envs,
            autoreset_mode=mode,
            **{
                **build.keywords,
                "num_workers": min(num_envs, build.keywords.get("num_workers", 1)),
            },
        )
        lockstep, free = (
            cartwheel.evaluate(envs, lean, episodes_per_env=3, seed=5, order=order)
            for order in ("lockstep", "free")
        )
        assert_equal(free, lockstep)


WRAPPERS = {
    "statistics": wrappers.RecordEpisodeStatistics,
    "stack": lambda envs: wrappers.FrameStack(envs, 3),
    "rewards and statistics": lambda envs: wrappers.RecordEpisodeStatistics(
        wrappers.TransformReward(envs, lambda rewards: rewards * 3)
    ),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("mode", MODES)
def test_wrappers_of_cartwheel_are_evaluated_too(build_with, mode, wrap):
    def policy(observations):
        return observations.reshape(len(observations), -1).sum(axis=1).astype(np.int64) % 10

    envs = build_with(wrap, PROCESS(transcripts(2, 5, 1, 9, 30), autoreset_mode=mode))
    lockstep, free = (
        cartwheel.evaluate(envs, policy, episodes_per_env=3, seed=1, order=order)
        for order in ("lockstep", "free")
    )
    assert_equal(free, lockstep)
    assert free.returns[:, 0].max() > free.lengths[:, 0].max()
    assert_at_rest(envs)


@pytest.mark.parametrize("executor", [INLINE, THREAD, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_episodes_of_one_step_and_single_environments_count_as_others(build_with, executor, mode):
    for lengths in ([1], [4], [1, 1, 1], [1, 7, 1]):
        envs = build_with(
            executor, transcripts(*lengths), autoreset_mode=mode, num_workers=min(2, len(lengths))
        )
        evaluation = cartwheel.evaluate(
            envs, kept_time(len(lengths)), episodes_per_env=5, recurrent=True, **FREE
        )
        assert evaluation.lengths.tolist() == [[length] * 5 for length in lengths]
        assert evaluation.returns.tolist() == evaluation.lengths.tolist()
        assert evaluation.terminated.all()


@pytest.mark.parametrize("build", KINDS)
def test_a_recurrent_policy_knows_its_rows_and_where_episodes_begin(build_with, build):
    envs = build_with(build, transcripts(2, 5, 1, 3))
    evaluation = cartwheel.evaluate(envs, kept_time(4), episodes_per_env=3, recurrent=True, **FREE)
    assert evaluation.lengths.tolist() == [[2] * 3, [5] * 3, [1] * 3, [3] * 3]


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_has_its_quota_is_neither_sent_nor_shown(build_with, executor, mode):
    envs = build_with(executor, lotteries(), autoreset_mode=mode)
    shown = np.zeros(NUM_ENVS, np.int64)

    def policy(observations, rows, first):
        assert len(rows) >= 1
        shown[rows] += 1
        return follow_luck(observations)

    evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=EPISODES, recurrent=True, **FREE)
    steps = evaluation.lengths.sum(axis=1)
    assert shown.tolist() == steps.tolist()
    assert list(envs.get_attr("steps")) == steps.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_observations_without_a_fixed_shape_are_those_of_their_rows(build_with, mode):
    envs = build_with(PROCESS, [partial(WordEnv, n) for n in (2, 5, 1)], autoreset_mode=mode)

    def read(observations, rows, first):
        words, clocks = observations
        assert [len(word) for word in words] == [[2, 5, 1][row] for row in rows]
        assert [word[0] for word in words] == ["abc"[int(t) % 3] for t in clocks[:, 0]]
        return np.ones(len(rows), np.int64)

    evaluation = cartwheel.evaluate(envs, read, episodes_per_env=2, recurrent=True, **FREE)
    assert evaluation.lengths.tolist() == [[2, 2], [5, 5], [1, 1]]


def test_progress_is_reported_whenever_episodes_finish(build_with):
    envs, reports = build_with(PROCESS, lotteries()), []
    cartwheel.evaluate(
        envs,
        follow_luck,
        episodes_per_env=3,
        progress=lambda *report: reports.append(report),
        **FREE,
    )
    done = [report[0] for report in reports]
    assert done == sorted(set(done))
    assert reports[-1] == (15, 15)


# No barrier


class GatedResetEnv(GatedEnv):
    """Every reset but the first waits: for an arrival at gate 1, or at a gate, if one is given."""

    def __init__(self, gates, number, awaits):
        super().__init__(gates)
        self.number, self.awaits, self.length = number, awaits, 3

    def reset(self, *, seed=None, options=None):
        if self.episodes:
            if self.awaits:
                self.gates.await_arrival(1)
            self.stand_at(self.number)
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("blocked", ["step", "reset"])
@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_is_blocked_does_not_hold_the_others(build_with, mode, blocked, gates):
    """The gate opens when the others have their quota, which a barrier would prevent.

    The others begin their second episodes when row 0 waits: only then is it the one that is slow.
    """
    waits_in_reset = blocked == "reset"
    envs = build_with(
        THREAD,
        [
            partial(GatedResetEnv, gates, int(waits_in_reset and not row), row > 0)
            for row in range(3)
        ],
        autoreset_mode=mode,
        num_workers=3,
    )
    reports = []

    def policy(observations, rows, first):
        return ((rows == 0) & (not waits_in_reset)).astype(np.int64)  # the number of a gate

    def report(done, total):
        reports.append(done)
        # In `SAME_STEP` the first episode of row 0 ends with the reset that waits.
        own = 1 if waits_in_reset and mode != "same_step" else 0
        if done == 10 + own:
            gates.await_arrival(1)
            gates.open(1)

    evaluation = cartwheel.evaluate(
        envs, policy, episodes_per_env=5, recurrent=True, progress=report, **FREE
    )
    assert reports[-1] == 15
    assert evaluation.lengths.tolist() == [[3] * 5] * 3


# Bad input


def untouched(*lengths):
    return [partial(lambda env_fn: Untouched(env_fn()), env_fn) for env_fn in transcripts(*lengths)]


@pytest.mark.parametrize("order", ["fast", "groups", None, 1])
def test_other_orders_are_refused_before_anything_is_reset(build_with, order):
    envs = build_with(INLINE, untouched(2, 3))
    with pytest.raises(
        ValueError, match=f"`order` must be one of 'lockstep', 'free', got {order!r}"
    ):
        cartwheel.evaluate(envs, ones, order=order)


SLIDE = """
<mujoco><worldbody><body><joint name="slide" type="slide"/><geom size="1"/></body></worldbody>
<actuator><motor joint="slide" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>
"""
CANNOT_SEND = {
    "gymnasium": lambda: gym.vector.SyncVectorEnv(untouched(2, 3)),
    "wrapper of gymnasium": lambda: RecordEpisodeStatistics(
        INLINE(untouched(2, 3), autoreset_mode="next_step")
    ),
    "wrapper without send": lambda: wrappers.AutoresetAdapter(
        INLINE(untouched(2, 3), autoreset_mode="disabled"), "next_step"
    ),
    "own model": lambda: mujoco.make(SLIDE, 2, reward=lambda *_: 0.0),
}


@pytest.mark.parametrize("build", CANNOT_SEND.values(), ids=CANNOT_SEND)
def test_environments_that_cannot_send_are_refused_before_anything_is_reset(build_with, build):
    with pytest.raises(TypeError, match=r"order='free' sends and receives.*or order='lockstep'"):
        cartwheel.evaluate(build_with(build), ones, **FREE)


def test_batches_of_fewer_rows_are_refused_before_anything_is_reset(build_with):
    envs = build_with(INLINE, untouched(2, 3), batch_size=1)
    with pytest.raises(ValueError, match="batch_size=1 below num_envs=2"):
        cartwheel.evaluate(envs, ones, **FREE)


def test_environments_in_flight_are_refused_and_stay_as_they_are(build_with):
    envs = build_with(INLINE, transcripts(2, 3))
    envs.reset()
    envs.send(np.ones(2, np.int64))
    with pytest.raises(gym.error.AlreadyPendingCallError, match="in flight"):
        cartwheel.evaluate(envs, ones, **FREE)
    assert envs.in_flight == [0, 1]
    assert envs.recv()[1].tolist() == [1, 1]
    assert_at_rest(envs)


def test_ctrl_c_as_rows_are_dropped_leaves_the_order_of_recv(build_with, monkeypatch):
    def interrupted(_envs):
        raise KeyboardInterrupt

    monkeypatch.setattr(stepping, "drop_in_flight", interrupted)
    envs = build_with(INLINE, transcripts(2, 3))
    with pytest.raises(KeyboardInterrupt):
        cartwheel.evaluate(envs, ones, **FREE)
    assert envs.recv_order == "sent"
    assert_at_rest(envs)
