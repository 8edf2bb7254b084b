"""Rows that are over wait, restart or repeat their last frame, as their mode says."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical
from tests.support.executors import SHORT_ROWS
from tests.support.oracle import (
    D,
    FrozenOracle,
    N,
    S,
    assert_same_reset,
    assert_same_steps,
    with_oracle,
)

SHORT = pytest.mark.parametrize(("build_any", "case"), SHORT_ROWS, indirect=["build_any"], ids=str)


def test_a_row_that_is_over_is_not_stepped(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3, D)
    actions = np.array([1, 0, 1])
    while not envs.step(actions)[2].any():
        oracle.step(actions)
    over = oracle.step(actions)[2]
    rows = np.flatnonzero(over).tolist()
    states = oracle.get_attr("state")
    for call in (envs.step, envs.step_async):
        with pytest.raises(cartwheel.EpisodeOverError) as refusal:
            call(actions)
        assert refusal.value.env_index == rows
        assert isinstance(refusal.value, AssertionError)
        assert isinstance(refusal.value, gym.error.ResetNeeded)
        assert str(rows) in str(refusal.value)
        assert_identical(envs.get_attr("state"), states)
    assert_same_reset(envs, oracle, options={"reset_mask": over})
    assert_same_steps(envs, oracle, 40)


@pytest.mark.parametrize(
    "case",
    [Case("CartPole-v1", {"max_episode_steps": 1}), Case("Null-v0", {"episode_steps": 1})],
    ids=["truncated", "terminated"],
)
def test_every_row_that_is_over_is_named(build_any, case):
    envs = build_any([case] * 9, autoreset_mode=D, num_workers=3)
    actions = np.zeros(9, np.int64)
    envs.reset(seed=1)
    envs.step(actions)
    with pytest.raises(cartwheel.EpisodeOverError) as refusal:
        envs.step(actions)
    assert refusal.value.env_index == list(range(9))
    envs.reset(options={"reset_mask": np.arange(9) != 4})
    with pytest.raises(cartwheel.EpisodeOverError) as refusal:
        envs.step(actions)
    assert refusal.value.env_index == [4]
    envs.reset(options={"reset_mask": np.arange(9) == 4})
    envs.step(actions)


def test_a_full_reset_clears_rows_that_are_over(build_any):
    envs, oracle = with_oracle(build_any, Case("FrozenLake-v1", {"max_episode_steps": 1}), 3, D)
    for seed in (1, None, 2):
        assert_same_reset(envs, oracle, seed=seed)
        assert_identical(envs.step([0, 1, 2]), oracle.step(np.array([0, 1, 2])))


@SHORT
def test_a_frozen_row_repeats_its_last_frame_until_it_is_reset(build_any, case):
    envs = build_any([case] * 5, autoreset_mode=D, on_done="freeze")
    oracle = FrozenOracle(case, 5)
    assert_identical(envs.reset(seed=3), oracle.reset(np.ones(5, bool), seed=3))
    envs.action_space.seed(3)
    random = np.random.default_rng(7)
    frozen = all_frozen = 0
    for turn in range(60):
        for _ in range(random.integers(1, 15)):
            actions = envs.action_space.sample()
            result = envs.step(actions)
            assert_identical(result, oracle.step(actions))
            over = result[2] | result[3]
            frozen, all_frozen = frozen + over.sum(), all_frozen + over.all()
        mask = random.random(5) < 0.6
        mask[turn % 5] = True
        assert_identical(envs.reset(options={"reset_mask": mask}), oracle.reset(mask))
    assert frozen > 50
    assert all_frozen > 0


@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
def test_freezing_changes_nothing_where_rows_restart_by_themselves(build_any, mode):
    envs, oracle = with_oracle(build_any, POLE, 3, mode, on_done="freeze")
    assert_same_steps(envs, oracle, 60)
