"""Rewards of several objectives are what each objective alone would give, side by side."""

import os
import re
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import cartwheel
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.objectives import NoisyEnv, OneObjective, TreasureEnv

K, ROWS = 3, 4
MODES = {mode.name.lower(): mode for mode in AutoresetMode}
by_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def noisy():
    return NoisyEnv(K)


def alone(objective):
    return OneObjective(NoisyEnv(K), objective)


def objectives(build, num_envs=ROWS, **keywords):
    """One vector environment for each objective, whose rewards are numbers."""
    return [build([partial(alone, number)] * num_envs, **keywords) for number in range(K)]


def side_by_side(results):
    """The results of the objectives: their rewards as columns, and what all of them have."""
    first = results[0]
    for other in results[1:]:
        assert_identical(other[2:4], first[2:4])
    return first[0], np.stack([result[1] for result in results], axis=-1), *first[2:]


def actions_of(rng, num_envs=ROWS):
    return rng.integers(0, 3, num_envs)


def over(result):
    return result[2] | result[3]


@by_mode
def test_steps_have_the_rewards_of_each_objective(build_everywhere, mode):
    envs = build_everywhere([noisy] * ROWS, autoreset_mode=mode)
    oracles = objectives(SyncVectorEnv, autoreset_mode=mode)
    rng = np.random.default_rng(1)
    assert envs.reward_space == Box(-np.inf, np.inf, (K,), np.float64)
    first = envs.reset(seed=5)
    for oracle in oracles:
        assert_identical(oracle.reset(seed=5), first)
    for _ in range(30):
        actions = actions_of(rng)
        result = envs.step(actions)
        expected = side_by_side([oracle.step(actions) for oracle in oracles])
        assert_identical(result, expected)
        assert result[1].shape == (ROWS, K)
        assert result[1].flags.c_contiguous
        assert result[1].flags.writeable
        if mode == AutoresetMode.DISABLED and over(result).any():
            begun = envs.reset(options={"reset_mask": over(result)})
            for oracle in oracles:  # Gymnasium changes the options
                assert_identical(oracle.reset(options={"reset_mask": over(result)}), begun)
    for oracle in oracles:
        oracle.close()


@by_mode
def test_rows_that_are_only_reset_or_rest_have_zeros(build, mode):
    keywords = {"on_done": "freeze"} if mode == AutoresetMode.DISABLED else {}
    envs = build([partial(TreasureEnv, 2)] * 2, autoreset_mode=mode, **keywords)
    envs.reset()
    results = [envs.step([1, 0]) for _ in range(3)]
    assert results[0][1].tolist() == [[0, -1], [0, -1]]
    assert results[1][1].tolist() == [[2, -1], [0, -1]]
    last = [0, -1] if mode == AutoresetMode.SAME_STEP else [0, 0]
    assert results[2][1].tolist() == [last, [0, -1]]


@by_mode
def test_sent_rows_have_the_rewards_of_each_objective(build, mode):
    keywords = {"on_done": "freeze"} if mode == AutoresetMode.DISABLED else {}
    keywords |= {"autoreset_mode": mode, "batch_size": 2}
    envs, oracles = build([noisy] * ROWS, **keywords), objectives(build, **keywords)
    rng, everyone = np.random.default_rng(2), [envs, *oracles]
    for each in everyone:
        each.send_reset(seed=3)
        for _ in range(2):
            each.recv()
    for _ in range(12):
        chosen, actions = rng.permutation(ROWS)[:2], actions_of(rng, 2)
        results = []
        for each in everyone:
            each.send(actions, chosen)
            result = each.recv()
            order = np.argsort(result[4]["env_index"])
            results.append(tuple(part[order] for part in result[:4]))
        assert results[0][1].shape == (2, K)
        assert_identical(results[0], side_by_side(results[1:]))
        chosen = rng.permutation(ROWS)[:2]
        results = [each.step(actions, chosen) for each in everyone]
        assert_identical(
            np.sort(results[0][1], axis=0),
            np.sort(np.stack([result[1] for result in results[1:]], axis=-1), axis=0),
        )


@by_mode
def test_rollouts_have_the_rewards_of_steps(build, mode):
    keywords = {"on_done": "freeze"} if mode == AutoresetMode.DISABLED else {}
    stepped = build([noisy] * ROWS, autoreset_mode=mode, **keywords)
    rolled = build([noisy] * ROWS, autoreset_mode=mode, **keywords)
    outer = cartwheel.wrappers.TransformObservation(
        build([noisy] * ROWS, autoreset_mode=mode, **keywords), lambda obs: obs * 1.0
    )  # its rollouts are copied step by step
    rng = np.random.default_rng(3)
    for envs in (stepped, rolled, outer):
        envs.reset(seed=4)
    for steps in (5, 3):
        arrays, copies = rolled.rollout(steps), outer.rollout(steps)
        taken = []
        for _ in range(steps):
            actions = actions_of(rng)
            taken.append(stepped.step(actions)[1])
            assert_identical(rolled.step(actions)[1], taken[-1])
            outer.step(actions)
        for found in (arrays, copies):
            assert found.rewards.shape == (steps, ROWS, K)
            assert found.rewards.flags.c_contiguous
            assert_identical(found.rewards, np.stack(taken))
            assert repr(found) == f"RolloutArrays({steps} steps × {ROWS} envs)"


def test_rewards_are_kept_as_they_were(build):
    envs = build([noisy] * ROWS)
    envs.reset(seed=6)
    kept = [envs.step([0, 1, 2, 0])[1] for _ in range(6)]
    copies = [rewards.copy() for rewards in kept]
    kept[0][...] = 9
    for _ in range(6):
        envs.step([0, 1, 2, 0])
    assert_identical(kept[1:], copies[1:])


def test_repeated_actions_sum_the_rewards_of_each_objective(build):
    keywords = {"action_repeat": 3, "max_episode_steps": 7}
    envs, oracles = build([noisy] * ROWS, **keywords), objectives(build, **keywords)
    for each in (envs, *oracles):
        each.reset(seed=8)
    rng = np.random.default_rng(4)
    for _ in range(15):
        actions = actions_of(rng)
        expected = side_by_side([oracle.step(actions) for oracle in oracles])
        assert_identical(envs.step(actions), expected)


def test_one_objective_is_a_column_and_not_a_number(build):
    envs = build([partial(NoisyEnv, 1)] * 2)
    envs.reset(seed=1)
    assert envs.step([0, 0])[1].shape == (2, 1)
    assert envs.rollout(2).rewards.shape == (2, 2, 1)


def test_rewards_are_numbers_where_the_outermost_space_is_none_or_a_number(build):
    envs = build([partial(alone, 0)] * 2)
    assert envs.reward_space is None
    envs.reset(seed=1)
    assert envs.step([0, 0])[1].shape == (2,)
    scalar = type("Scalar", (OneObjective,), {"reward_space": Box(-1, 1, ())})
    envs = build([lambda: scalar(NoisyEnv(), 1)] * 2)
    assert envs.reward_space is None


def test_rewards_of_mo_gymnasiums_wrapper_that_weighs_are_numbers(build):
    weighs = type("LinearReward", (gym.RewardWrapper,), {"reward": lambda _, r: float(np.sum(r))})
    weighs.__module__ = "mo_gymnasium.wrappers.wrappers"
    envs = build([lambda: TimeLimit(weighs(TreasureEnv()), 5)] * 2)
    assert envs.reward_space is None
    envs.reset()
    assert envs.step([0, 0])[1].tolist() == [-1, -1]


class WrongEnv(TreasureEnv):
    """Returns what ``wrong`` is, from the second step on."""

    wrong = None
    steps = 0

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = super().step(action)
        return observation, reward if self.steps < 2 else self.wrong, *rest


def test_a_reward_of_another_form_is_an_error_that_names_its_row(build):
    envs = build([TreasureEnv, WrongEnv])
    for wrong, text in (
        (1.5, "must have the shape (2,) of `reward_space`, got (): if a wrapper makes numbers"),
        (np.zeros(3), "must have the shape (2,) of `reward_space`, got (3,)"),
        ([[1, 2]], "must have the shape (2,) of `reward_space`, got (1, 2)"),
        (["a", "b"], "could not convert string to float"),
    ):
        envs.apply(setattr, "wrong", wrong, env_index=[1])
        envs.apply(setattr, "steps", 0, env_index=[1])
        envs.reset()
        envs.step([0, 0])
        with pytest.raises(ValueError, match=re.escape(text)) as failure:
            envs.step([1, 1])
        assert_names_row(failure.value, 1)
        envs.reset()
        assert_identical(envs.get_attr("place"), (0, 0))


def test_an_array_is_still_refused_where_rewards_are_numbers(build):
    envs = build([lambda: OneObjective(TreasureEnv(), 0)])
    envs.apply(lambda env: setattr(env, "step", env.env.step))
    envs.reset()
    with pytest.raises(ValueError, match="a reward must be a number, got an array of shape"):
        envs.step([0])


def failing(_action):
    raise RuntimeError("broken")


@by_mode
def test_a_row_whose_environment_failed_has_zeros(build, mode):
    envs = build([partial(TreasureEnv, 9)] * 2, autoreset_mode=mode, on_error="restart")
    envs.reset()
    assert envs.step([1, 1])[1].tolist() == [[0, -1]] * 2
    envs.apply(setattr, "step", failing, env_index=[1])
    _, rewards, _, truncations, _ = envs.step([1, 1])
    assert rewards.tolist() == [[0, -1], [0, 0]]
    assert truncations.tolist() == [False, True]


def test_a_row_of_a_worker_that_was_restarted_has_zeros(build_processes):
    envs = build_processes([partial(TreasureEnv, 9)] * 2, on_worker_death="restart")
    envs.reset()
    envs.step([1, 1])
    envs.apply(lambda env: setattr(env, "step", lambda _: os._exit(1)), env_index=[0])
    _, rewards, _, truncations, infos = envs.step([1, 1])
    assert rewards.tolist() == [[0, 0], [0, -1]]
    assert truncations.tolist() == infos["worker_restarted"].tolist() == [True, False]


def test_restored_rows_have_the_same_rewards_again(build):
    envs = build([noisy] * 2)
    envs.reset(seed=3)
    envs.step([0, 1])
    states = envs.get_state()
    expected = [envs.step([1, 2])[1] for _ in range(4)]
    envs.set_state(None, states)
    assert_identical([envs.step([1, 2])[1] for _ in range(4)], expected)


def test_rows_must_agree_about_their_rewards(build):
    text = (
        "rewards of all environments must have the same shape: `reward_space` of row 0 is Box(.*"
        "that of row 2 is Box"
    )
    with pytest.raises(RuntimeError, match=text.replace("(", r"\(")):
        build([partial(NoisyEnv, 2), partial(NoisyEnv, 2), partial(NoisyEnv, 3)])
    with pytest.raises(RuntimeError, match="that of row 1 is None"):
        build([partial(NoisyEnv, 1), partial(alone, 0)])


class MarkedEnv(TreasureEnv):
    """Has the given ``reward_space``."""

    def __init__(self, space):
        super().__init__()
        self.reward_space = space


@pytest.mark.parametrize(
    "space",
    [gym.spaces.MultiDiscrete([2, 2]), Box(0, 1, (2, 2)), "(2,)"],
    ids=["discrete", "matrix", "text"],
)
def test_a_reward_space_of_another_form_is_refused(build, space):
    with pytest.raises(ValueError, match=r"`reward_space` must be a Box of shape \(k,\), got"):
        build([partial(MarkedEnv, space)])


def test_native_rewards_are_numbers():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    assert envs.reward_space is None
    envs.close()
