"""A collector shares its environments: after another caller, its next rollout begins anew."""

import logging
import threading

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.wrappers import AutoresetAdapter, NormalizeReward, RecordMetrics
from tests.support.cases import Case, lean
from tests.support.collecting import assert_same
from tests.support.executors import EVERY_KIND, INLINE, NATIVE, PROCESS, THREAD

MODES = ["next_step", "same_step", "disabled"]
POLE = Case("CartPole-v1", {"max_episode_steps": 11})
N = 4
STILL = np.zeros(N, np.int64)


def evaluates(envs):
    cartwheel.evaluate(envs, lean, seed=3)


def sends(envs):
    envs.send(STILL[:1], [2])
    envs.recv()


def restores(envs):
    envs.set_state([1], envs.get_state([0]))


def resets_a_row(envs):
    envs.reset(options={"reset_mask": np.arange(N) == 2})


def collects(envs):
    cartwheel.Collector(envs, lean, 3).collect()


def waits(envs):
    envs.step_async(STILL)
    envs.step_wait()


CALLERS = {
    "step": lambda envs: envs.step(STILL),
    "step of a row": lambda envs: envs.step(STILL[:1], [1]),
    "step_async": waits,
    "send": sends,
    "reset": lambda envs: envs.reset(seed=9),
    "reset of a row": resets_a_row,
    "set_state": restores,
    "evaluate": evaluates,
    "collect": collects,
}
#: Gymnasium's CartPole has no states.
KINDS = [
    pytest.param(kind, called, id=f"{kind}-{called}")
    for kind in (INLINE, PROCESS, NATIVE)
    for called in CALLERS
    if called != "set_state" or kind is NATIVE
]
#: What neither steps nor resets.
OTHERS = {
    "get_attr": lambda envs: envs.get_attr("spec"),
    "rollout": lambda envs: envs.end_rollout(),
    "stats": lambda envs: envs.stats(),
}


@pytest.fixture
def told(caplog):
    """The warnings of the logger so far."""
    caplog.set_level(logging.WARNING, "cartwheel")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def make(closes):
    """Makes environments, which are closed after the test."""

    def make(kind, mode="next_step", **keywords):
        return closes(kind([POLE] * N, autoreset_mode=mode, **keywords))

    return make


def assert_begins_anew(rollout):
    """The rollout begins with a reset of all rows, and every transition is one."""
    assert rollout.is_first[0].all()
    assert not rollout.prev_done.any()
    assert not rollout.carry.returns.any()
    assert not rollout.carry.lengths.any()
    assert not rollout.carry.done.any()
    rollout.carry.returns[:] = 1  # a field of its own
    rollout.carry.truncated[:] = True
    assert not rollout.carry.rewards.any()
    assert not rollout.carry.terminated.any()
    assert rollout.valid[0].all()
    assert (np.abs(rollout.observations[0]) <= 0.05).all()
    steps = rollout.transitions()
    before, after = steps.observations, steps.next_observations
    # Euler's method: a position changes by the velocity before it, times 0.02 s.
    moved = before + 0.02 * np.roll(before, -1, 1)
    np.testing.assert_allclose(after[:, [0, 2]], moved[:, [0, 2]], atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "called"), KINDS)
def test_the_next_rollout_begins_anew_and_says_so_once(make, told, kind, mode, called):
    freezes = {"on_done": "freeze"} if mode == "disabled" else {}
    envs = make(kind, mode, **freezes)
    collector = cartwheel.Collector(envs, lean, num_steps=25, seed=1)
    first, second = collector.collect(), collector.collect()
    assert not second.is_first[0].all()
    assert_begins_anew(first)
    CALLERS[called](envs)
    assert told() == []
    assert_begins_anew(collector.collect())
    (message,) = told()
    assert "begins its next rollout with a reset" in message
    assert not collector.collect().is_first[0].all()
    CALLERS[called](envs)
    assert_begins_anew(collector.collect())
    assert len(told()) == 1


def test_a_rollout_begins_anew_after_an_evaluation_that_could_not_reset_every_row(closes):
    """Environments of Gymnasium count no calls: the evaluation tells of itself."""
    envs = closes(SyncVectorEnv([lambda: gym.make("CartPole-v1")] * N))
    collector = cartwheel.Collector(envs, lean, 3, seed=1)
    collector.collect()
    with pytest.raises(gym.error.Error, match="Seed must be"):
        cartwheel.evaluate(envs, lean, seed=[1, 2, 3, -4])
    assert_begins_anew(collector.collect())


@pytest.mark.parametrize("called", OTHERS)
def test_calls_that_step_and_reset_nothing_change_nothing(make, told, called):
    envs, alone = make(THREAD), make(THREAD)
    collectors = [cartwheel.Collector(each, lean, 7, seed=1) for each in (envs, alone)]
    for _ in range(4):
        assert_same(*(collector.collect() for collector in collectors))
        OTHERS[called](envs)
    assert told() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ["groups", "free"])
@pytest.mark.parametrize("kind", EVERY_KIND, ids=str)
def test_rows_that_ran_ahead_begin_anew_too(make, told, kind, order, mode):
    envs = make(kind, mode)
    collector = cartwheel.Collector(envs, lean, 6, seed=1, order=order, run_ahead=1)
    for _ in range(3):
        collector.collect()
    collector.pause()
    went_on = collector.collect()
    assert not went_on.is_first[0].all()
    assert told() == []
    collector.pause()
    evaluates(envs)
    assert_begins_anew(collector.collect())
    assert len(told()) == 1
    assert not collector.collect().is_first[0].all()


@pytest.mark.parametrize("order", ["lockstep", "groups", "free"])
@pytest.mark.parametrize("mode", MODES)
def test_a_policy_that_uses_the_environments_loses_the_rollout(make, mode, order):
    envs = make(INLINE, mode)
    asked = []

    def policy(observations):
        asked.append(len(observations))
        if len(asked) == 5:
            envs.step(STILL)
        return lean(observations)

    collector = cartwheel.Collector(envs, policy, 20, seed=1, order=order, groups=1)
    with pytest.raises(RuntimeError, match="by another caller while the collector collected"):
        collector.collect()
    assert_begins_anew(collector.collect())


@pytest.mark.parametrize("way", [{"num_steps": 4}, {"until": "all_done"}], ids=str)
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", [INLINE, PROCESS, NATIVE], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", [1, 2, 4])
def test_a_policy_that_ends_the_rollout_of_the_environments_loses_it(
    make, kind, mode, call, wrapped, way
):
    envs = make(kind, mode)
    envs = RecordMetrics(envs) if wrapped else envs
    asked = []

    def policy(observations):
        asked.append(len(observations))
        if len(asked) == call:
            envs.end_rollout()
        return lean(observations)

    collector = cartwheel.Collector(envs, policy, seed=1, **way)
    with pytest.raises(RuntimeError, match="their rollout was ended, by another caller"):
        collector.collect()
    assert len(asked) == call
    assert_begins_anew(collector.collect())


@pytest.mark.parametrize("by_thread", [False, True])
@pytest.mark.parametrize("order", ["lockstep", "groups", "free"])
@pytest.mark.parametrize("mode", MODES)
def test_a_collector_that_is_closed_while_it_collects_returns_nothing(make, mode, order, by_thread):
    envs, asked = make(PROCESS, mode), []

    def policy(observations):
        asked.append(len(observations))
        if len(asked) == 3 and by_thread:
            closing = threading.Thread(target=collector.close)
            closing.start()
            closing.join(60)
        elif len(asked) == 3:
            collector.close()
        return lean(observations)

    collector = cartwheel.Collector(envs, policy, 20, seed=1, order=order, groups=1)
    with pytest.raises(RuntimeError, match="was closed while it collected"):
        collector.collect()
    assert len(asked) == 3
    assert envs.in_flight == []
    with pytest.raises(RuntimeError, match="`collect` of a closed collector"):
        collector.collect()
    assert_begins_anew(cartwheel.Collector(envs, lean, 20, seed=1, order=order, groups=1).collect())


@pytest.mark.parametrize("ends", ["close", "pause"])
@pytest.mark.parametrize("order", ["lockstep", "groups", "free"])
def test_rows_that_another_caller_has_sent_stay_in_flight(make, order, ends):
    envs = make(PROCESS)
    collector, other = (cartwheel.Collector(envs, lean, 6, seed=1, order=order) for _ in range(2))
    collector.collect()
    envs.send(STILL[:2], [3, 1])
    for each in (collector, other):
        with pytest.raises(AlreadyPendingCallError, match="in flight"):
            each.collect()
        getattr(each, ends)()
    assert envs.in_flight == [1, 3]
    assert envs.recv()[4]["env_index"].tolist() == [3, 1]
    if ends == "pause":
        assert_begins_anew(collector.collect())


@pytest.mark.parametrize("is_late", [False, True])
def test_rows_that_others_have_sent_stay_in_flight_without_the_collector(make, is_late):
    """Before it was made, or instead of as many of its own."""
    envs = make(INLINE)
    envs.reset(seed=1)
    rows = [3, 1]
    if not is_late:
        envs.send(STILL[:2], rows)
    collector = cartwheel.Collector(envs, lean, 6, order="groups", run_ahead=1)
    if is_late:
        collector.collect()
        rows = envs.in_flight
        assert rows
        while envs.in_flight:
            envs.recv()
        envs.send(STILL[: len(rows)], rows)
    del collector
    with pytest.raises(AlreadyPendingCallError, match="in flight"):
        envs.reset()
    assert envs.in_flight == sorted(rows)


def test_another_thread_that_does_not_pause_the_background_is_told(make):
    envs = make(THREAD)
    is_asked, may_answer = threading.Event(), threading.Event()

    def policy(observations):
        is_asked.set()
        assert may_answer.wait(60)
        return lean(observations)

    def other():
        assert is_asked.wait(60)
        envs.step(STILL)
        may_answer.set()

    collector = cartwheel.Collector(envs, policy, 3, seed=1, background=True)
    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(RuntimeError, match="in the background after `pause`"):
        collector.collect()
    thread.join(60)
    assert_begins_anew(collector.collect())
    collector.close()


@pytest.mark.parametrize("way", [{"until": "all_done"}, {"num_episodes": 10}])
def test_rollouts_of_episodes_begin_with_a_reset_anyway(make, told, way):
    envs = make(NATIVE, "disabled", on_done="freeze")
    collector = cartwheel.Collector(envs, lean, seed=1, **way)
    collector.collect()
    envs.step(STILL)
    assert_begins_anew(collector.collect())
    assert told() == []


@pytest.mark.parametrize("way", [{"until": "all_done"}, {"num_episodes": 10}], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [INLINE, PROCESS, NATIVE], ids=str)
def test_rollouts_of_episodes_have_whole_ones_where_resets_are_staggered(kind, mode, way):
    case = Case("Pendulum-v1", {"max_episode_steps": 200})

    def collected(**keywords):
        envs = kind([case] * 6, autoreset_mode=mode, max_episode_steps=9, **keywords)
        push = lambda observations: np.sign(observations[:, 2:])  # noqa: E731
        collector = cartwheel.Collector(envs, push, seed=1, **way)
        rollouts = [collector.collect(), collector.collect()]
        envs.close()
        return rollouts

    for plain, staggered in zip(collected(), collected(staggered_reset=True), strict=True):
        assert_same(staggered, plain)
        assert (staggered.episodes().lengths == 9).all()


def test_rollouts_of_steps_are_staggered():
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", 20, max_episode_steps=9, staggered_reset=True)
    push = lambda observations: np.sign(observations[:, 2:])  # noqa: E731
    rollout = cartwheel.Collector(envs, push, 9, seed=1).collect()
    assert rollout.truncated.any(0).all()
    assert len(set(rollout.truncated.argmax(0))) > 4
    envs.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_wrappers_that_make_several_calls_a_step_are_no_other_caller(make, told, mode):
    envs = RecordMetrics(AutoresetAdapter(make(INLINE, "disabled"), mode))
    collector = cartwheel.Collector(envs, lean, 25, seed=1)
    collector.collect()
    assert not collector.collect().is_first[0].all()
    assert told() == []
    envs.unwrapped.reset()
    assert_begins_anew(collector.collect())


@pytest.mark.parametrize("called", ["evaluate", "collect", "step", "reset"])
@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_own_are_watched_in_wrappers_evaluations_and_collectors(told, mode, called):
    envs = SyncVectorEnv(
        [lambda: gym.make("CartPole-v1", max_episode_steps=11)] * N,
        autoreset_mode=AutoresetMode[mode.upper()],
    )
    inner = NormalizeReward(envs)
    pairs = [(inner, inner), (inner, envs)]
    if called in ("evaluate", "collect"):
        pairs.append((envs, inner))
    for others, own in pairs:
        collector = cartwheel.Collector(own, lean, 25, seed=1)
        collector.collect()
        assert not collector.collect().is_first[0].all()
        if called == "step" and mode == "disabled":
            others.reset()
        CALLERS[called](others)
        assert_begins_anew(collector.collect())
    assert told()
    envs.close()
