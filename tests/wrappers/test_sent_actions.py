"""Smoothed, delayed and sticky actions are those of single environments, to the bit."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.vector import AsyncVectorEnv

from cartwheel.wrappers import DelayAction, SmoothAction, StickyAction
from tests.contract.expected import GOLDEN, mixed
from tests.support.comparison import assert_identical
from tests.support.environments import SamplingEnv
from tests.support.wrapping import (
    SCRIPT,
    Builds,
    D,
    S,
    alone,
    assert_traces,
    build,
    drive,
    settings_of,
)


class Smooth(gym.ActionWrapper):
    """For one environment."""

    last = None

    def reset(self, **keywords):
        self.last = None
        return super().reset(**keywords)

    def action(self, action):
        if self.last is not None:
            mean = 0.3 * self.last.astype(np.float64) + (1 - 0.3) * action.astype(np.float64)
            action = mean.astype(np.float32)
        self.last = action
        return action


class Delay(gym.ActionWrapper):
    """For one environment; 3 steps."""

    def reset(self, **keywords):
        self.waiting = [4] * 3
        return super().reset(**keywords)

    def action(self, action):
        self.waiting.append(action)
        return self.waiting.pop(0)


class Sticky(gym.ActionWrapper):
    """For one environment, which is reset with a seed at first; its seed is 9."""

    def reset(self, *, seed=None, options=None):
        self.last = None
        if seed is not None:
            key = int(np.random.SeedSequence(9).generate_state(1, np.uint64)[0])
            self.state = mixed(key + mixed(seed + GOLDEN))
        return super().reset(seed=seed, options=options)

    def action(self, action):
        if self.last is not None:
            self.state += GOLDEN
            action = self.last if (mixed(self.state) >> 11) / 2**53 < 0.4 else action
        self.last = action
        return action


@pytest.mark.parametrize(
    ("environment", "wrap", "single"),
    [
        ("pendulum", lambda envs: SmoothAction(envs, 0.3), Smooth),
        ("taxi", lambda envs: DelayAction(envs, 3, 4), Delay),
        ("pendulum", lambda envs: StickyAction(envs, 0.4, seed=9), Sticky),
        ("taxi", lambda envs: StickyAction(envs, 0.4, seed=9), Sticky),
    ],
    ids=["smooth", "delay", "sticky", "discrete sticky"],
)
def test_they_are_those_of_single_environments(environment, wrap, single):
    expected = alone(environment, SCRIPT, single)
    plain = alone(environment, SCRIPT)
    assert [one.reward for one in expected[0]] != [one.reward for one in plain[0]]
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            traces = drive(
                wrap(build(kind, environment, mode, **keywords)), SCRIPT, way, close=False
            )
            assert_traces(traces, expected)


WRAPS = {
    "smooth": lambda envs: SmoothAction(envs, 0.5),
    "delay": lambda envs: DelayAction(envs, 2),
    "sticky": lambda envs: StickyAction(envs, 0.5, seed=1),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_calls_that_are_refused_change_nothing(wrap):
    envs, other = (wrap(build("native", "pendulum", S)) for _ in range(2))
    rng = np.random.default_rng(1)
    for vectors in (envs, other):
        vectors.reset(seed=1)
    for _ in range(12):
        actions = rng.uniform(-2, 2, (3, 1)).astype(np.float32)
        with pytest.raises(ValueError, match="names row 1 twice"):
            envs.step(-actions, [0, 1, 1])
        with pytest.raises(ValueError, match="must have shape"):
            envs.step(actions[:2])
        envs.send(actions, [0, 1, 2])
        with pytest.raises(AlreadyPendingCallError):
            envs.send(-actions[:1], [0])
        with pytest.raises(AlreadyPendingCallError):
            envs.step(-actions)
        assert_identical(envs.recv(min_rows=3)[:4], other.step(actions)[:4])
    envs.close()
    other.close()


def test_a_pending_step_of_gymnasiums_environments_is_not_changed():
    make = [lambda: gym.make("Pendulum-v1")] * 2
    envs, other = (SmoothAction(AsyncVectorEnv(make), 0.5) for _ in range(2))
    for vectors in (envs, other):
        vectors.reset(seed=1)
    for push in (2, 1, -1):
        actions = np.full((2, 1), push, np.float32)
        envs.step_async(actions)
        with pytest.raises(AlreadyPendingCallError):
            envs.step_async(-actions)
        assert_identical(envs.step_wait()[:4], other.step(actions)[:4])
    envs.close()
    other.close()


def moves(envs):
    """Rewards of each row, which follow from the actions that were sent."""
    traces = drive(envs, SCRIPT)
    return [[one.reward for one in trace] for trace in traces]


def repeated(seed, reset_seed):
    """The actions that 40 rows were sent last."""
    envs = StickyAction(build("native", "pendulum", num_envs=40), 0.5, seed)
    envs.reset(seed=reset_seed)
    for number in range(3):
        envs.step(np.full((40, 1), number))
    last = envs.get_own_state()["last"]["actions"].ravel().tolist()
    envs.close()
    return last


def test_numbers_of_sticky_actions_depend_on_both_seeds():
    for seeds in ((3, 1), (3, None), (None, 1)):
        assert repeated(*seeds) == repeated(*seeds)
    assert repeated(3, 1) != repeated(4, 1)
    assert repeated(3, 1) != repeated(3, 2)
    assert repeated(None, 1) != repeated(None, 2)
    assert repeated(None, 1) != repeated(3, 1)
    assert 0 < repeated(3, 1).count(2) < 40


def test_without_any_seed_numbers_differ():
    assert repeated(None, None) != repeated(None, None)


@pytest.mark.parametrize("probability", [0, 1])
def test_a_probability_may_be_0_or_1(probability):
    envs = StickyAction(build("native", "pendulum"), probability)
    envs.reset(seed=1)
    for push in (1, 2):
        envs.step(np.full((3, 1), push))
    last = envs.get_own_state()["last"]["actions"].ravel().tolist()
    assert last == [2 - probability] * 3
    envs.close()


NESTED = Dict(
    push=Box(1, 2, (2,), np.float32),
    which=Discrete(3, start=-1),
    both=MultiDiscrete([4, 4], start=[2, 3]),
    bits=MultiBinary(2),
)


class Echo(gym.Env):
    """Shows the action that it got."""

    def __init__(self, space=NESTED):
        self.action_space = space
        self.observation_space = Dict(got=space)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        del options
        return {"got": self.action_space.sample()}, {}

    def step(self, action):
        return {"got": action}, 0.0, False, False, {}


def test_nested_actions_are_delayed_and_filled_by_what_is_nearest_to_0():
    envs = DelayAction(build("inline", Echo, num_envs=2), 1)
    envs.reset(seed=1)
    envs.action_space.seed(2)
    first, second = envs.action_space.sample(), envs.action_space.sample()
    got = envs.step(first)[0]["got"]
    assert got["push"].tolist() == [[1, 1]] * 2
    assert got["which"].tolist() == [-1, -1]
    assert got["both"].tolist() == [[2, 3]] * 2
    assert got["bits"].tolist() == [[0, 0]] * 2
    assert_identical(envs.step(second)[0]["got"], first)
    envs.close()


def test_nested_actions_are_repeated_as_a_whole():
    envs = StickyAction(build("inline", Echo, num_envs=30), 0.5, seed=4)
    envs.reset(seed=1)
    envs.action_space.seed(2)
    first, second = envs.action_space.sample(), envs.action_space.sample()
    envs.step(first)
    got = envs.step(second)[0]["got"]
    repeated = (got["push"] == first["push"]).all(axis=1)
    assert 5 < repeated.sum() < 25
    for key, values in got.items():
        chosen = repeated if values.ndim == 1 else repeated[:, None]
        assert_identical(values, np.where(chosen, first[key], second[key]))
    envs.close()


def test_a_fill_may_be_given():
    fill = {"push": [1.5, 1.25], "which": 1, "both": [4, 4], "bits": [1, 0]}
    envs = DelayAction(build("inline", Echo, num_envs=2), 2, fill)
    envs.reset(seed=1)
    got = envs.step(envs.action_space.sample())[0]["got"]
    assert {key: values[1].tolist() for key, values in got.items()} == fill
    envs.close()


def test_a_delay_of_0_changes_nothing():
    assert moves(DelayAction(build("native", "taxi"), 0)) == moves(build("native", "taxi"))


@pytest.mark.parametrize(
    ("environment", "wrap", "error", "text"),
    [
        ("pole", lambda envs: SmoothAction(envs, 0.5), TypeError, r"needs actions of a Box of fl"),
        ("pendulum", lambda envs: SmoothAction(envs, 1.5), ValueError, "`smoothing` must be a num"),
        ("pole", lambda envs: DelayAction(envs, -1), ValueError, "`delay` must be"),
        ("pole", lambda envs: DelayAction(envs, 1, 2), ValueError, "`fill` must be an action"),
        ("pendulum", lambda envs: DelayAction(envs, 1, [3.0]), ValueError, r"Box.*, got \[3.0\]"),
        ("pole", lambda envs: StickyAction(envs, 2), ValueError, "`probability` must be a number"),
        ("pole", lambda envs: StickyAction(envs, 0.5, -1), ValueError, "`seed` must be"),
    ],
)
def test_wrong_arguments_are_refused(environment, wrap, error, text):
    envs = build("native", environment)
    with pytest.raises(error, match=text):
        wrap(envs)
    envs.close()


class Pushed(gym.Env):
    """Keeps its actions; one above 50 raises."""

    observation_space = action_space = Box(-99, 99, (1,), np.float64)

    def reset(self, **_keywords):
        self.got = []
        return np.zeros(1), {}

    def step(self, action):
        if action[0] > 50:
            raise ValueError("chosen to fail")
        self.got.append(float(action[0]))
        return action, 0.0, False, False, {}


def test_actions_of_a_step_that_is_refused_count_for_no_row():
    """They follow a step whose result was lost, and which counts."""
    envs = SmoothAction(build("inline", Pushed, D, num_envs=2), 0.5)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.step(np.array([[4.0], [99.0]]))
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.array([[8.0], [1.0]]))
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.step(np.array([[36.0], [1.0]]))
    assert envs.unwrapped.get_attr("got") == ([4.0, 20.0], [1.0])
    envs.close()


@pytest.mark.parametrize("wrap", [WRAPS["delay"], WRAPS["sticky"]], ids=["delay", "sticky"])
def test_actions_without_a_fixed_shape_are_refused(wrap):
    envs = build("inline", lambda: Echo(Dict(word=Text(4))))
    with pytest.raises(TypeError, match="nested Dict and Tuple spaces of these, got Dict"):
        wrap(envs)
    envs.close()


@pytest.mark.parametrize(
    ("space", "actions", "text"),
    [
        (Dict(a=Discrete(3), b=Discrete(3)), {"a": [0, 1]}, "must be nested as the space Dict"),
        (Tuple([Discrete(3)]), ([0, 1], [0, 1]), "must be nested as the space Tuple"),
        (Discrete(3), [0.9, 1.9], r"must be int64 for Discrete\(3\), got float64"),
        (Dict(a=MultiBinary(2)), {"a": np.full((2, 2), 0.5)}, r"must be int8 .*, got float64"),
        (Discrete(3), [None, 1], r"must be int64 for Discrete\(3\), got object"),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrap", [WRAPS["delay"], WRAPS["sticky"]], ids=["delay", "sticky"])
def test_actions_that_do_not_fit_the_space_are_refused(wrap, space, actions, text):
    """As the environments refuse them: a float is not cut off."""
    envs = wrap(build("inline", lambda: SamplingEnv(Discrete(2), action_space=space), num_envs=2))
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=text):
        envs.step(actions)
    envs.step(envs.action_space.sample())
    envs.close()
