"""An evaluation plays whole episodes, and leaves what wrappers know of the training as it is."""

import signal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as gymnasium_wrappers

import cartwheel
from cartwheel.wrappers import (
    AutoresetAdapter,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    RecordMetrics,
)
from tests.support.cases import Case, lean
from tests.support.comparison import assert_identical
from tests.support.executors import EVERY_KIND, INLINE, NATIVE, PROCESS

MODES = ["next_step", "same_step", "disabled"]
POLE = Case("CartPole-v1", {"max_episode_steps": 500})
PENDULUM = Case("Pendulum-v1", {"max_episode_steps": 200})
RULES = {"max_episode_steps": 30}


def push(observations):
    return np.sign(observations[:, 2:])


@pytest.mark.parametrize("order", ["lockstep", "free"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", EVERY_KIND, ids=str)
def test_staggered_rows_play_whole_episodes(build_with, kind, mode, order):
    def evaluation(**keywords):
        envs = build_with(kind, [PENDULUM] * 6, autoreset_mode=mode, **RULES, **keywords)
        return cartwheel.evaluate(envs, push, episodes_per_env=2, seed=3, order=order)

    plain, staggered = evaluation(), evaluation(staggered_reset=True)
    assert (staggered.lengths == 30).all()
    assert_identical(staggered.lengths, plain.lengths)
    assert_identical(staggered.returns, plain.returns)


@pytest.mark.parametrize("order", ["lockstep", "free"])
@pytest.mark.parametrize("kind", EVERY_KIND, ids=str)
def test_an_evaluation_ends_a_rollout_and_is_not_in_it(build_with, kind, order):
    def built():
        envs = build_with(kind, [POLE] * 4)
        envs.reset(seed=1)
        return envs

    envs = built()
    arrays, actions = envs.rollout(9), np.ones(4, np.int64)
    for _ in range(3):
        envs.step(actions)
    recorded = [array.copy() for array in (arrays.observations, arrays.rewards)]
    found, wanted = (
        cartwheel.evaluate(each, lean, seed=3, order=order) for each in (envs, built())
    )
    assert_identical(found.returns, wanted.returns)
    envs.reset(seed=4)
    envs.step(actions[:1], [2])
    assert_identical([arrays.observations, arrays.rewards], recorded)


@pytest.mark.parametrize("kind", [INLINE, PROCESS, NATIVE], ids=str)
def test_after_an_evaluation_resets_stagger_rows_again(build_with, kind):
    def lengths(*, evaluates):
        envs = build_with(kind, [PENDULUM] * 6, **RULES, staggered_reset=True)
        if evaluates:
            cartwheel.evaluate(envs, push, seed=3, options=[None] * 6)
        envs.reset(seed=4)
        over = np.array([envs.step(np.zeros((6, 1), np.float32))[3] for _ in range(30)])
        return over.argmax(0).tolist()

    assert lengths(evaluates=True) == lengths(evaluates=False)
    assert len(set(lengths(evaluates=True))) > 3


def stacked(envs):
    """All wrappers that know something of the training, the outermost first."""
    metrics = RecordMetrics(envs, stats_key="metrics")
    statistics = RecordEpisodeStatistics(metrics)
    rewards = NormalizeReward(statistics)
    observations = NormalizeObservation(rewards)
    return observations, rewards, statistics, metrics


def train(envs, steps=70):
    """Steps until episodes of all rows have ended, and are running again."""
    observations, _ = envs.reset(seed=1)
    for step in range(steps):
        observations, _, terminations, truncations, _ = envs.step(lean(observations) ^ (step % 2))
        over = terminations | truncations
        if over.any() and envs.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
            observations, _ = envs.reset(options={"reset_mask": over})


def known(wrappers):
    """The statistics of wrappers, without those of running episodes."""
    running = ("returns", "lengths", "stale", "seconds", "seeds", "shown")
    flags = ("success_once", "success_at_end", "fail_once", "fail_at_end")
    states = [wrapper.get_own_state() for wrapper in wrappers]
    return [
        {name: part for name, part in state.items() if name not in (*running, *flags)}
        for state in states
    ]


@pytest.mark.parametrize("order", ["lockstep", "free"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", EVERY_KIND, ids=str)
def test_an_evaluation_leaves_what_wrappers_know_of_the_training(build_with, kind, mode, order):
    wrappers = stacked(build_with(kind, [POLE] * 3, autoreset_mode=mode, max_episode_steps=20))
    envs, _, statistics, metrics = wrappers
    train(envs)
    before, queue, mean = known(wrappers), list(statistics.return_queue), metrics.mean()
    assert before[2]["episode_count"] > 3
    assert len(before[3]["finished"]["seed"]) > 3

    evaluation = cartwheel.evaluate(envs, lean, episodes_per_env=3, seed=5, order=order)
    assert evaluation.returns.shape == (3, 3)
    assert_identical(known(wrappers), before)
    assert list(statistics.return_queue) == queue
    assert metrics.mean() == mean
    again = cartwheel.evaluate(envs, lean, episodes_per_env=3, seed=5, order=order)
    assert_identical(again.returns, evaluation.returns)

    train(envs)
    after = known(wrappers)
    assert after[0]["count"] > before[0]["count"]
    assert after[1]["count"] > before[1]["count"]
    assert after[2]["episode_count"] == after[3]["episode_count"] > before[2]["episode_count"]
    assert len(metrics.finished()["seed"]) == after[3]["episode_count"]


def test_an_evaluation_that_raises_leaves_them_too(build_with):
    wrappers = stacked(build_with(NATIVE, [POLE] * 3, max_episode_steps=9))
    train(wrappers[0])
    wrappers[1].update_running_mean = False
    before, asked = known(wrappers), []

    def fails(observations):
        asked.append(observations)
        if len(asked) == 15:
            raise ZeroDivisionError
        assert [wrapper.update_running_mean for wrapper in wrappers[:2]] == [True, False]
        return lean(observations)

    with pytest.raises(ZeroDivisionError):
        cartwheel.evaluate(wrappers[0], fails, episodes_per_env=9)
    assert_identical(known(wrappers), before)
    train(wrappers[0])
    after = known(wrappers)
    assert after[0]["count"] > before[0]["count"]
    assert after[1]["count"] == before[1]["count"]


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("wrapper", [NormalizeObservation, RecordMetrics])
def test_ctrl_c_as_statistics_are_frozen_or_thawed_leaves_none_frozen(monkeypatch, wrapper, begins):
    freeze = wrapper._set_frozen

    def interrupted(self, *, is_frozen):
        freeze(self, is_frozen=is_frozen)
        if is_frozen == begins:
            signal.raise_signal(signal.SIGINT)

    envs = NormalizeObservation(RecordMetrics(cartwheel.NativeVectorEnv("CartPole-v1", 2)))
    with monkeypatch.context() as patch:
        patch.setattr(wrapper, "_set_frozen", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cartwheel.evaluate(envs, lean, seed=1, progress=False)
    assert not envs.is_frozen
    assert not envs.env.is_frozen
    envs.reset(seed=1)
    assert envs.obs_rms.count > 1
    while not len(envs.env.finished()["return"]):
        envs.step(np.zeros(2, np.int64))
    envs.close()


def test_wrappers_within_one_that_makes_calls_are_left_too(build_with):
    wrappers = stacked(build_with(INLINE, [POLE] * 3, autoreset_mode="disabled"))
    envs = AutoresetAdapter(wrappers[0], "same_step")
    train(envs)
    before = known(wrappers)
    cartwheel.evaluate(envs, lean, seed=5)
    assert_identical(known(wrappers), before)


def test_an_evaluation_reports_its_episodes_in_the_infos(build_with):
    envs = RecordEpisodeStatistics(build_with(NATIVE, [POLE] * 2, max_episode_steps=7))
    shown = []

    class Watching(cartwheel.wrappers.TransformReward):
        def transform(self, batch):
            shown.extend(batch.infos.get("episode", {}).get("l", []))
            super().transform(batch)

    cartwheel.evaluate(Watching(envs, lambda rewards: rewards), lean, episodes_per_env=2)
    assert shown.count(7) == 4
    assert envs.episode_count == 0


def test_gymnasiums_wrappers_keep_what_they_know():
    envs = SyncVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=9)] * 3)
    statistics = gymnasium_wrappers.RecordEpisodeStatistics(envs)
    rewards = gymnasium_wrappers.NormalizeReward(statistics)
    observations = gymnasium_wrappers.NormalizeObservation(rewards)
    rewards.update_running_mean = False
    train(observations)

    def moments():
        return [
            (rms.mean.copy(), rms.var.copy(), rms.count)
            for rms in (observations.obs_rms, rewards.return_rms)
        ]

    def queues():
        return [
            [float(np.asarray(value)) for value in queue]
            for queue in (statistics.return_queue, statistics.length_queue, statistics.time_queue)
        ]

    before = moments(), queues(), statistics.episode_count
    cartwheel.evaluate(observations, lean, episodes_per_env=2, seed=3)
    after = moments(), queues(), statistics.episode_count
    assert_identical(after, before)
    assert (observations.update_running_mean, rewards.update_running_mean) == (True, False)
    observations.close()
