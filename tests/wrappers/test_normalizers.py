"""``NormalizeObservation`` and ``NormalizeReward`` against moments by hand, and across modes.

Every number ever counted is kept, and moments are computed from all.
"""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.utils import RunningMeanStd

import cartwheel
from cartwheel.wrappers import FrameStack, NormalizeObservation, NormalizeReward
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, TRANSITION
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.executors import INLINE
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

#: A result is rounded to ``float32`` once (6e-8); beyond that, the order of additions differs.
CLOSE = {"rtol": 2e-7, "atol": 1e-9}


class Witness(VectorWrapper):
    """Keeps copies of the last batch, before other wrappers see it."""

    def transform(self, batch):
        finals = batch.finals(self.single_observation_space)
        copies = ("kinds", "observations", "rewards", "terminations", "truncations")
        self.batch = {name: np.copy(getattr(batch, name)) for name in copies}
        self.batch["rows"] = batch.rows.copy()
        self.batch["finals"] = {}
        if finals is not None:
            pairs = zip(finals.places.tolist(), finals.observations.copy(), strict=True)
            self.batch["finals"] = dict(pairs)


def moments(numbers, shape=()):
    """Mean, variance and count of all numbers and of the row with which Gymnasium begins."""
    numbers = np.array(numbers, np.float64).reshape(len(numbers), *shape)
    count = 1e-4 + len(numbers)
    mean = numbers.sum(0) / count
    return mean, (((numbers - mean) ** 2).sum(0) + 1e-4 * (1 + mean**2)) / count, count


class Observations:
    """The results of ``NormalizeObservation``, from the batches of a witness."""

    def __init__(self, witness, epsilon):
        self.witness, self.epsilon = witness, epsilon
        self.mode = witness.metadata["autoreset_mode"]
        self.counted, self.shown, self.known = [], {}, 0
        self.shape = witness.single_observation_space.shape

    def emit(self, observation):
        if self.known != len(self.counted):
            self.known = len(self.counted)
            self.mean, self.variance, _ = moments(self.counted, self.shape)
        return (observation - self.mean) / np.sqrt(self.variance + self.epsilon)

    def check(self, result, _rows):
        """Fails unless the result of a call is that of the witness's last batch."""
        batch, shown, infos = self.witness.batch, result[0], result[-1]
        rows, kinds, raw = batch["rows"], batch["kinds"], batch["observations"]
        assert shown.dtype == np.float32
        is_reset = batch["rewards"].dtype == object
        over = np.zeros(len(rows), bool)
        if self.mode == S and not is_reset:
            over = batch["terminations"] | batch["truncations"]
        stepped = np.isin(kinds, (TRANSITION, INCOMPLETE))
        begun = (kinds == RESET) | over
        now = stepped & ~over | (begun if self.mode == N else False)
        for place in range(len(rows)):
            if now[place]:
                self.counted.append(raw[place])
            elif over[place] and stepped[place]:
                self.counted.append(batch["finals"][place])
        for place in range(len(rows)):
            if now[place]:
                np.testing.assert_allclose(shown[place], self.emit(raw[place]), **CLOSE)
            elif over[place] and kinds[place] == FAILED:
                assert infos["final_obs"][place].tobytes() == self.shown[rows[place]]
            elif over[place]:
                final = infos["final_obs"][place]
                assert final.dtype == np.float32
                np.testing.assert_allclose(final, self.emit(batch["finals"][place]), **CLOSE)
        later = begun & ~now
        self.counted.extend(raw[later])
        for place in range(len(rows)):
            if later[place]:
                np.testing.assert_allclose(shown[place], self.emit(raw[place]), **CLOSE)
            elif not now[place]:
                assert shown[place].tobytes() == self.shown[rows[place]], "not as it was shown"
            self.shown[rows[place]] = shown[place].tobytes()


class Rewards:
    """The results of ``NormalizeReward``, from the batches of a witness."""

    def __init__(self, witness, gamma, epsilon):
        self.witness, self.gamma, self.epsilon = witness, gamma, epsilon
        self.counted, self.returns = [], np.zeros(witness.num_envs)

    def check(self, result, _rows):
        """Fails unless the result of a call is that of the witness's last batch."""
        batch = self.witness.batch
        rows, kinds, raw = batch["rows"], batch["kinds"], batch["rewards"]
        begun = kinds == RESET
        if raw.dtype == object:
            self.returns[rows[begun]] = 0
            return
        for row, kind, reward in zip(rows, kinds, raw, strict=True):
            self.returns[row] = self.gamma * self.returns[row] + reward if kind == TRANSITION else 0
            if kind == TRANSITION:
                self.counted.append(self.returns[row])
        variance = moments(self.counted)[1]
        stepped = np.isin(kinds, (TRANSITION, INCOMPLETE))
        expected = np.where(stepped, raw / np.sqrt(variance + self.epsilon), 0.0)
        np.testing.assert_allclose(result[1], expected, rtol=1e-12)
        self.returns[rows[batch["terminations"] | batch["truncations"]]] = 0


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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["native", "inline"])
def test_numbers_that_are_set_later_count_from_then_on(kind, mode):
    def made(gamma, epsilon):
        envs = NormalizeObservation(build(kind, "pole", mode, on_done=on_done), epsilon)
        return NormalizeReward(envs, gamma, epsilon)

    on_done = "freeze" if mode is D else "raise"
    envs, others = made(0.9, 1e-6), made(0.5, 1e-2)
    random = np.random.default_rng(1)
    for each in (envs, others):
        each.reset(seed=1)
    for _ in range(5):
        actions = random.integers(0, 2, 3)
        for each in (envs, others):
            each.step(actions)
    for each, like in ((others, envs), (others.env, envs.env)):
        each.set_own_state(like.get_own_state())
    envs.gamma = 0.5
    envs.epsilon = envs.env.epsilon = 1e-2
    assert (envs.gamma, envs.epsilon, envs.env.epsilon) == (0.5, 1e-2, 1e-2)
    for _ in range(20):
        actions = random.integers(0, 2, 3)
        assert_identical(*(each.step(actions) for each in (envs, others)))
    for name, wrong in (("gamma", 2), ("epsilon", 0)):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            setattr(envs, name, wrong)
    assert (envs.gamma, envs.epsilon) == (0.5, 1e-2)
    for each in (envs, others):
        each.close()


@pytest.mark.parametrize("mode", MODES)
def test_accumulated_rewards_are_the_returns_so_far_and_can_be_set(mode):
    on_done = "freeze" if mode is D else "raise"
    made = INLINE(transcripts(9, 3), autoreset_mode=mode, on_done=on_done)
    envs = NormalizeReward(made, 0.5)
    envs.reset(seed=1)
    assert envs.accumulated_reward.tolist() == [0, 0]
    for total in (1, 1.5):
        envs.step([1, 1])
        assert envs.accumulated_reward.tolist() == [total, total]
    envs.accumulated_reward[:] = 7  # a copy
    moments = envs.return_rms
    envs.accumulated_reward = [4, 8]
    assert envs.return_rms.var == moments.var
    envs.step([1, 1])
    assert envs.accumulated_reward.tolist() == [3, 0]
    assert envs.return_rms.count == moments.count + 2
    with pytest.raises(ValueError, match=r"`accumulated_reward` must have the shape \(2,\)"):
        envs.accumulated_reward = [1, 2, 3]
    assert envs.accumulated_reward.tolist() == [3, 0]
    envs.close()
