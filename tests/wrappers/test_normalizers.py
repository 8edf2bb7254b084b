"""``NormalizeObservation`` and ``NormalizeReward`` against moments by hand, and across modes."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.utils import RunningMeanStd

import cartwheel
from cartwheel.wrappers import FrameStack, NormalizeObservation, NormalizeReward
from tests.support.normalizing import CLOSE, Observations, Rewards, Witness, moments
from tests.support.wrapping import (
    MODES,
    SCRIPT,
    Builds,
    D,
    N,
    S,
    build,
    drive,
    script_of,
    settings_of,
)


@pytest.mark.parametrize("name", ["pole", "one step", "pendulum", "images", "failing"])
def test_every_new_number_counts_once_and_rows_left_alone_stay(name):
    with Builds() as built:
        for kind, mode, way, keywords in settings_of(name):
            witness = Witness(built(kind, name, mode, **keywords))
            envs = NormalizeObservation(NormalizeReward(witness, 0.9, 1e-6), 1e-4)
            observations, rewards = Observations(witness, 1e-4), Rewards(witness, 0.9, 1e-6)

            def check(result, rows, observations=observations, rewards=rewards):
                observations.check(result, rows)
                rewards.check(result, rows)

            drive(envs, script_of(name), way, check=check, close=False)
            mean, variance, count = moments(observations.counted, observations.shape)
            np.testing.assert_allclose(envs.obs_rms.mean, mean, rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(envs.obs_rms.var, variance, rtol=1e-11)
            np.testing.assert_allclose(envs.obs_rms.count, count, rtol=1e-14)
            mean, variance, count = moments(rewards.counted)
            np.testing.assert_allclose(envs.return_rms.mean, mean, rtol=1e-11)
            np.testing.assert_allclose(envs.return_rms.var, variance, rtol=1e-11)
            np.testing.assert_allclose(envs.return_rms.count, count, rtol=1e-14)


@pytest.mark.parametrize("kind", ["process", "inline", "native", "sync"])
def test_returns_are_those_of_single_environments_in_every_mode(kind):
    traces = drive(build(kind, "pendulum", N), SCRIPT)
    returns = []
    for trace in traces:
        total = 0.0
        for moment in trace:
            total = 0.0 if moment.what == "reset" else 0.9 * total + moment.reward
            returns += [total] if moment.what == "step" else []
    for mode in MODES:
        if kind != "sync":  # only rows that need steps are stepped
            envs = NormalizeReward(build(kind, "pendulum", mode), 0.9)
            drive(envs, SCRIPT, "rows")
            mean, variance, count = moments(returns)
            np.testing.assert_allclose(envs.return_rms.mean, mean, rtol=1e-12)
            np.testing.assert_allclose(envs.return_rms.var, variance, rtol=1e-12)
            np.testing.assert_allclose(envs.return_rms.count, count, rtol=1e-14)


def wrapped(envs):
    return NormalizeReward(FrameStack(NormalizeObservation(envs), 3))


@pytest.mark.parametrize("kind", ["inline", "native", "sync"])
@pytest.mark.parametrize(("name", "num_envs"), [("pole", 7), ("one step", 5), ("pole", 1)])
def test_same_step_is_disabled_with_masked_resets_to_the_bit(kind, name, num_envs):
    same = wrapped(build(kind, name, S, num_envs))
    disabled = wrapped(build(kind, name, D, num_envs))
    both = [envs.reset(seed=3)[0] for envs in (same, disabled)]
    assert both[0].tobytes() == both[1].tobytes()
    same.action_space.seed(0)
    ended = 0
    for number in range(60):
        if number == 30:  # an explicit reset of one row
            options = {"reset_mask": np.arange(num_envs) == 0}
            both = [envs.reset(seed=8, options=dict(options))[0] for envs in (same, disabled)]
            assert both[0].tobytes() == both[1].tobytes()
        actions = same.action_space.sample()
        results = [envs.step(actions) for envs in (same, disabled)]
        for ours, theirs in zip(results[0][1:4], results[1][1:4], strict=True):
            assert ours.tobytes() == theirs.tobytes()
        (shown, _, terminations, truncations, infos), (true, *_) = results
        over = terminations | truncations
        ended += over.sum()
        for row in over.nonzero()[0]:
            assert infos["final_obs"][row].tobytes() == true[row].tobytes()
        if over.any():
            true, _ = disabled.reset(options={"reset_mask": over})
        assert shown.tobytes() == true.tobytes()
    assert ended > 1
    states = [pickle.dumps(part.get_own_state()) for part in (same, disabled)]
    assert states[0] == states[1]
    same.close()
    disabled.close()


def test_moments_are_those_of_gymnasium_where_it_is_right():
    def make():
        return cartwheel.NativeVectorEnv("Pendulum-v1", 5, max_episode_steps=1000)

    ours = NormalizeObservation(make())
    theirs = gym.wrappers.vector.NormalizeObservation(make())
    ours.action_space.seed(1)
    pairs = [[envs.reset(seed=0)[0] for envs in (ours, theirs)]]
    for _ in range(50):
        actions = ours.action_space.sample()
        pairs.append([envs.step(actions)[0] for envs in (ours, theirs)])
    for own, other in pairs:  # Gymnasium's moments are float32
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.obs_rms.var, theirs.obs_rms.var, rtol=1e-4)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", MODES)
def test_numbers_far_from_zero_keep_their_variance(mode):
    class FarEnv(gym.Env):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
            super().reset(seed=seed)
            return np.array([1e9]), {}

        def step(self, action):
            return np.array([1e9 + action]), 1e9 + float(action), False, False, {}

    envs = wrapped(cartwheel.VectorEnv([FarEnv] * 4, executor="inline", autoreset_mode=mode))
    inner = envs.env.env
    envs.reset()
    zeros, ones = np.zeros(4, int), np.ones(4, int)
    state = inner.get_own_state()
    inner.set_own_state({**state, "mean": np.array([1e9]), "var": np.zeros(1), "count": 4.0})
    for _ in range(50):
        envs.step(zeros)
        envs.step(ones)
    expected = np.var([1e9] * 204 + [1e9 + 1] * 200)
    np.testing.assert_allclose(inner.obs_rms.var, [expected], rtol=1e-6)
    envs.close()


def test_evaluations_do_not_change_the_moments():
    envs = wrapped(cartwheel.NativeVectorEnv("CartPole-v1", 3))
    parts = [envs, envs.env.env]
    envs.reset(seed=0)
    envs.step(np.ones(3, int))
    states = [part.get_own_state() for part in parts]
    for part in parts:
        assert part.update_running_mean
        part.update_running_mean = False
    envs.step(np.ones(3, int))
    for part, before in zip(parts, states, strict=True):
        after = part.get_own_state()
        assert not after["update_running_mean"]
        for name in ("mean", "var", "count"):
            np.testing.assert_array_equal(before[name], after[name])
    envs.close()


def test_a_state_of_another_wrapper_is_refused_and_changes_nothing():
    envs = wrapped(cartwheel.NativeVectorEnv("CartPole-v1", 2))
    envs.reset(seed=0)
    for part in (envs, envs.env, envs.env.env):
        state = part.get_own_state()
        with pytest.raises(ValueError, match="`state` must be a dict with the keys"):
            part.set_own_state({})
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match=f"'{name}'.*must be an array"):
                    part.set_own_state({**state, name: np.zeros(9)})
        assert pickle.dumps(part.get_own_state()) == pickle.dumps(state)
    envs.close()


def test_wrong_arguments_are_refused():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    nested = cartwheel.NativeVectorEnv("Blackjack-v1", 2)
    for epsilon in (0, -1, float("nan"), float("inf"), "1", None, True):
        for wrapper in (NormalizeObservation, NormalizeReward):
            with pytest.raises(ValueError, match="`epsilon` must be a number above 0, got"):
                wrapper(envs, epsilon=epsilon)
    for gamma in (-0.1, 1.1, float("nan"), None):
        with pytest.raises(ValueError, match="`gamma` must be a number from 0 to 1, got"):
            NormalizeReward(envs, gamma=gamma)
    with pytest.raises(TypeError, match=r"only a Box of numbers can be normalized, got .*Tuple"):
        NormalizeObservation(nested)
    envs.close()
    nested.close()


def test_spaces_and_rollouts_have_normalized_observations():
    envs = NormalizeObservation(cartwheel.NativeVectorEnv("CartPole-v1", 3, batch_size=2))
    assert envs.single_observation_space == gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    assert envs.observation_space.shape == (2, 4)
    envs.close()
    envs = NormalizeObservation(cartwheel.NativeVectorEnv("CartPole-v1", 3))
    first, _ = envs.reset(seed=0)
    arrays = envs.rollout(2)
    shown = [first] + [envs.step(np.ones(3, int))[0] for _ in range(2)]
    np.testing.assert_array_equal(arrays.observations, shown)
    np.testing.assert_allclose(arrays.observations, shown, **CLOSE)
    envs.close()


def test_moments_can_be_set_to_others_and_to_gymnasiums():
    envs, other = (NormalizeReward(NormalizeObservation(build("native", "pole"))) for _ in range(2))
    envs.reset(seed=1)
    envs.step(np.ones(3, int))
    other.obs_rms, other.return_rms = envs.obs_rms, envs.return_rms
    for name in ("obs_rms", "return_rms"):
        for part in ("mean", "var", "count"):
            given, expected = (getattr(getattr(each, name), part) for each in (other, envs))
            np.testing.assert_array_equal(given, expected)
    theirs = RunningMeanStd(shape=(4,))
    theirs.update(np.arange(8.0).reshape(2, 4))
    other.obs_rms = theirs
    np.testing.assert_array_equal(other.obs_rms.mean, theirs.mean)
    assert other.obs_rms.count == theirs.count
    for bad, error, words in [
        (RunningMeanStd(shape=(3,)), ValueError, r"must have mean and var of shape \(4,\)"),
        (RunningMeanStd(shape=(4,), epsilon=0), ValueError, "a count above 0"),
        (None, TypeError, "must have the attributes mean, var, count, got None"),
    ]:
        with pytest.raises(error, match=words):
            other.obs_rms = bad
        np.testing.assert_array_equal(other.obs_rms.mean, theirs.mean)
    for each in (envs, other):
        each.close()
