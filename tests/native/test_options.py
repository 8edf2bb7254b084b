"""Options of a reset have the same effect on native environments as on Gymnasium's."""

import re
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import native_envs, reset_option_names
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE, assert_same_reset, assert_same_steps, flags


def without_address(value):
    """A test id for this parameter that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


OPTIONS = [
    ("CartPole-v1", {"low": -0.2}),
    ("CartPole-v1", {"high": 0.01}),
    ("CartPole-v1", {"low": 0.1, "high": 0.1}),
    ("CartPole-v1", {"low": -3, "high": -2}),
    ("CartPole-v1", {"low": np.float32(0.01), "high": np.float64(0.02)}),
    ("MountainCar-v0", {"low": 0.1, "high": 0.2}),
    ("MountainCar-v0", {"low": -2, "high": 3}),
    ("MountainCarContinuous-v0", {"low": 0.3, "high": 0.44}),
    ("MountainCarContinuous-v0", {"low": -1.5, "high": 1}),
    ("Pendulum-v1", {"x_init": 0.1}),
    ("Pendulum-v1", {"y_init": 0}),
    ("Pendulum-v1", {"x_init": 50, "y_init": 12.5}),
    ("Acrobot-v1", {"low": -3, "high": 3}),
    ("Acrobot-v1", {"high": 1}),
    *[(env_id, {}) for env_id in ("CartPole-v1", "Pendulum-v1", "Taxi-v4", "Blackjack-v1")],
]


@MODE
@pytest.mark.parametrize(("env_id", "options"), OPTIONS, ids=str)
def test_options_of_a_reset_act_as_in_gymnasium(build_pair, env_id, options, mode):
    """They affect only that reset, not autoresets and later resets."""
    envs, oracle = build_pair(env_id, 4, mode, max_episode_steps=7)
    masked = {**options, "reset_mask": flags(0, 1, 1, 0)}
    for seed, chosen in [(3, options), (None, options), (None, masked), (None, None)]:
        assert_same_reset(envs, oracle, seed=seed, options=chosen)
        assert_same_steps(envs, oracle, 10)


BAD_OPTIONS = [
    ("CartPole-v1", {"low": 0.3}),
    ("CartPole-v1", {"low": 1, "high": -1}),
    ("CartPole-v1", {"low": "x"}),
    ("CartPole-v1", {"low": None}),
    ("CartPole-v1", {"low": [1]}),
    ("CartPole-v1", {"high": np.zeros(2)}),
    ("MountainCar-v0", {"low": -0.3}),
    ("MountainCarContinuous-v0", {"high": -0.7}),
    ("Acrobot-v1", {"low": 0.2}),
    ("Pendulum-v1", {"x_init": -1.0}),
    ("Pendulum-v1", {"y_init": "fast"}),
]


@pytest.mark.parametrize(("env_id", "options"), BAD_OPTIONS, ids=str)
def test_options_that_gymnasium_refuses_are_refused_before_any_row_is_reset(
    build_pair, env_id, options
):
    envs, oracle = build_pair(env_id, 3)
    with pytest.raises(ValueError, match=r"\w"):
        oracle.reset(options=dict(options))
    with pytest.raises(ValueError, match=r"\w"):
        envs.reset(seed=2, options=dict(options))
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"low": 0.06}, r"^Lower bound \(0.06\) must be lower than higher bound"),
        ({"low": None}, r"^`options\['low'\]` must be a finite number, got None\.$"),
        ({"low": object()}, r"must be a finite number, got <object object at .*>\.$"),
        ({"high": np.nan}, r"^`options\['high'\]` must be a finite number, got nan\.$"),
        *[
            ({name: flags(1, 0, 1)}, f"{name}.*: did you mean .reset_mask.?")
            for name in ("mask", "reset_masks", "Reset-Mask")
        ],
    ],
    ids=without_address,
)
def test_the_error_names_or_shows_the_refused_option(build_pair, options, text):
    envs, oracle = build_pair("CartPole-v1", 3)
    with pytest.raises(ValueError, match=text):
        envs.reset(seed=2, options=options)
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize(
    "options",
    [
        {"lo": 1},
        {"x": object()},
        {3: {4: 5}},
        {"x": 1, "reset_mask": flags(1, 0, 1)},
        {"rows": [0]},
    ],
    ids=without_address,
)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "Taxi-v4", "Blackjack-v1"])
def test_options_that_no_native_environment_has_are_refused(build_pair, env_id, options):
    envs, oracle = build_pair(env_id, 3)
    for reset in (envs.reset, envs.send_reset):
        with pytest.raises(ValueError, match=f"^{env_id} has no option "):
            reset(seed=2, options=options)
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "Taxi-v4", "Blackjack-v1"])
def test_options_that_only_other_native_environments_have_are_ignored(build_pair, env_id):
    """Environments may share one dictionary."""
    envs, oracle = build_pair(env_id, 3)
    assert_same_reset(envs, oracle, seed=2, options={"x_init": "far", "y_init": None})
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4"])
def test_a_single_environment_ignores_options_that_it_does_not_have(env_id):
    """A wrapper may use them."""
    options = {"level": 3, "mask": flags(1), "x_init": "far", "reset_mask": flags(1)}
    env, oracle = gym.make(f"cartwheel/{env_id}"), gym.make(env_id)
    assert_identical(env.reset(seed=1, options=options), oracle.reset(seed=1, options=options))
    env.close()


def test_every_option_of_a_reset_is_listed():
    """A wrong order of bounds is refused, so the environment reads the options that it lists."""
    wrong = {"low": 1, "high": -1, "x_init": 1, "y_init": -1}
    listed = {env_id: reset_option_names(env_id) for env_id, *_ in native_envs()}
    assert listed["Pendulum-v1"] == ["x_init", "y_init"]
    assert listed["Taxi-v4"] == []
    for env_id in ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"):
        assert listed[env_id] == ["low", "high"]
        with closing(cartwheel.NativeVectorEnv(env_id, 1)) as envs:
            for_all = {name: wrong[name] for name in listed[env_id]}
            with pytest.raises(ValueError, match=r"must be lower"):
                envs.reset(options=for_all)
