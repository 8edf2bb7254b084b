"""Options of a reset have the same effect on native environments as on Gymnasium's."""

import re

import numpy as np
import pytest

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
        ({"low": None}, "^invalid type: null, expected f64"),
        ({"low": object()}, '^invalid type: string "<object object at .*expected f64'),
        ({"high": np.nan}, '^invalid type: string "nan", expected f64'),
        *[
            ({name: flags(1, 0, 1)}, f'^there is no option "{name}": .* are `reset_mask`')
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
        {"x_init": "far", "high": 0.3},
        {"y_init": None, "low": -0.3},
        {"x": object(), "y": np.nan, 3: {4: 5}, "z": [flags(1, 0)]},
        {"x": 1, "reset_mask": flags(1, 0, 1)},
    ],
    ids=without_address,
)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "Taxi-v4", "Blackjack-v1"])
def test_options_that_an_environment_does_not_have_are_ignored(build_pair, env_id, options):
    envs, oracle = build_pair(env_id, 3)
    assert_same_reset(envs, oracle, seed=2, options=options)
    assert_same_steps(envs, oracle, 5)
