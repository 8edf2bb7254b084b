"""Wrappers without state give what Gymnasium's give in single environments, to the bit."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers as singles
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.vector.utils import batch_space

from cartwheel import wrappers
from tests.support.comparison import assert_identical
from tests.support.environments import samplers
from tests.support.executors import INLINE
from tests.support.gymnasium_versions import space_of_today
from tests.support.wrapping import (
    Builds,
    alone,
    assert_traces,
    build,
    drive,
    script_of,
    settings_of,
)

#: Gymnasium warns that bounds lose precision.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered")

POLE_LOW = np.array([-1, -np.inf, 0, -np.inf], np.float32)
POLE_HIGH = np.array([3, np.inf, 1, np.inf], np.float32)


def same(name, *arguments, **keywords):
    """A wrapper of ours, and the one of Gymnasium of the same name for single environments."""
    return (
        lambda envs: getattr(wrappers, name)(envs, *arguments, **keywords),
        lambda env: getattr(singles, name)(env, *arguments, **keywords),
    )


def halved(name, batched, single):
    """Wrappers with a function of their own for one environment and for a batch."""
    return (
        lambda envs: getattr(wrappers, name)(envs, batched),
        lambda env: getattr(singles, name)(env, single, None),
    )


def clipped(values):
    return np.clip(values, -0.02, 0.02)


#: By environment, wrappers of ours and of Gymnasium.
TABLE = {
    "pole": {
        "transform": halved("TransformObservation", clipped, clipped),
        "reshape": same("ReshapeObservation", (2, 1, 2)),
        "rescale": same("RescaleObservation", POLE_LOW, POLE_HIGH),
        "dtype": same("DtypeObservation", np.float64),
        "reward": (
            lambda envs: wrappers.TransformReward(envs, lambda rewards: rewards * 3 - 1),
            lambda env: singles.TransformReward(env, lambda reward: float(reward) * 3 - 1),
        ),
    },
    "pendulum": {
        "rescale": same("RescaleObservation", 0, 1),
        "clip reward": same("ClipReward", -1.5, -0.25),
        "rescale action": same("RescaleAction", -0.5, 0.25),
        "transform action": halved(
            "TransformAction", lambda actions: actions / 3, lambda action: action / np.float32(3)
        ),
    },
    "car": {"clip action": same("ClipAction"), "least reward": same("ClipReward", 0.0)},
    "taxi": {"dtype": same("DtypeObservation", np.float32), "flatten": same("FlattenObservation")},
    "blackjack": {
        "flatten": same("FlattenObservation"),
        "filter": same("FilterObservation", [2, 0]),
    },
    "nested": {
        "flatten": same("FlattenObservation"),
        "filter": same("FilterObservation", ["walk", "state"]),
    },
    "irregular": {
        "flatten": same("FlattenObservation"),
        "filter": same("FilterObservation", ["word", "which", "many"]),
    },
    "one step": {"dtype": same("DtypeObservation", np.float16)},
    "failing": {
        "reshape": same("ReshapeObservation", (6,)),
        "reward": (
            lambda envs: wrappers.TransformReward(envs, lambda rewards: rewards + 1),
            lambda env: singles.TransformReward(env, lambda reward: float(reward) + 1),
        ),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("environment", TABLE)
def test_every_row_lives_as_in_a_wrapper_of_its_own(environment):
    script, table = script_of(environment), TABLE[environment]
    expected = {name: alone(environment, script, one) for name, (_, one) in table.items()}
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            bare = build(kind, environment, mode, **keywords)
            for number, (name, (wrap, _)) in enumerate(table.items()):
                ways = {"process": ("send",), "native": ("rows", "send", "freeze")}.get(kind)
                if number and ways is not None and way not in ways:
                    continue  # what these kinds do is shown with the first wrapper
                traces = drive(wrap(bare), script, way, close=False)
                assert_traces(traces, expected[name])


@pytest.mark.parametrize("environment", TABLE)
def test_spaces_are_those_of_gymnasium(environment):
    bare = build("inline", environment)
    env = alone_env(environment)
    for wrap, one in TABLE[environment].values():
        envs, single = wrap(bare), one(env)
        expected = space_of_today(single)
        assert envs.single_observation_space == expected
        assert envs.single_action_space == single.action_space
        assert envs.observation_space == batch_space(expected, 3)
        assert envs.action_space == batch_space(single.action_space, 3)
    bare.close()


def alone_env(environment):
    envs = build("sync", environment)
    return envs.envs[0]


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_a_multi_discrete_space_has_any_dtype_of_numbers(dtype):
    dice = gym.spaces.MultiDiscrete([6, 4], start=[1, 0])
    envs, others = (INLINE(samplers(dice, 2)) for _ in range(2))
    converted = wrappers.DtypeObservation(others, dtype)
    expected, _ = envs.reset(seed=3)
    shown, _ = converted.reset(seed=3)
    np.testing.assert_array_equal(shown, expected)
    assert shown.dtype == dtype
    assert converted.observation_space.contains(shown)
    if dtype == np.float32:
        bounds = gym.spaces.Box(np.float32([1, 0]), np.float32([6, 3]))
        assert converted.single_observation_space == bounds
    envs.close()
    converted.close()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int8])
def test_choices_of_any_dtype_are_flattened(dtype):
    """Gymnasium has no one-hot vectors of ``uint64``: the expected ones are of ``int64``."""

    def spaces(dtype):
        return Discrete(5, dtype=dtype), MultiDiscrete([3, 2], start=[1, 0], dtype=dtype)

    for space, signed in zip(spaces(dtype), spaces(np.int64), strict=True):
        envs, others = (INLINE(samplers(space, 2)) for _ in range(2))
        flat = wrappers.FlattenObservation(others)
        shown = envs.reset(seed=3)[0].astype(np.int64)
        expected = np.stack([gym.spaces.flatten(signed, one) for one in shown])
        assert_identical(flat.reset(seed=3)[0], expected.astype(dtype))
        envs.close()
        flat.close()


@pytest.mark.parametrize(
    ("space", "dtype", "named"),
    [
        (gym.spaces.Box(-1.2, 0.6, (2,), np.float32), np.uint8, "-1.2"),
        (gym.spaces.Box(0, 256, (2,), np.int32), np.uint8, "256"),
        (gym.spaces.Box(-200, 127, (2,), np.float32), np.int8, "-200"),
        (gym.spaces.MultiDiscrete([2, 300]), np.uint8, "300"),
        (gym.spaces.MultiDiscrete([2, 3], start=[-1, 0]), np.uint8, "-1"),
        (gym.spaces.MultiDiscrete([2, 3], start=[0, 126]), np.int8, "128"),
    ],
)
def test_integers_that_would_wrap_around_are_refused(space, dtype, named):
    """As Gymnasium's Box refuses them: -1.2 would be shown as 255."""
    envs = INLINE(samplers(space, 2))
    with pytest.raises(ValueError, match=rf"the bound {named} .* outside of {np.dtype(dtype)}, "):
        wrappers.DtypeObservation(envs, dtype)
    envs.close()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8])
def test_a_space_of_integers_has_the_converted_observations(dtype):
    """In Gymnasium's, an infinite upper bound is the least integer, as the lower one is."""
    low = np.float32([-np.inf, -2.5, 0.2, -1e30])
    high = np.float32([np.inf, 2.5, 0.9, 1e30])
    limits = np.iinfo(dtype)
    least = [limits.min, -2, 0, limits.min]
    if dtype == np.uint8:  # which has no negative numbers
        low, least = np.zeros_like(low), [0, 0, 0, 0]
    envs = INLINE(samplers(gym.spaces.Box(low, high), 2))
    space = wrappers.DtypeObservation(envs, dtype).single_observation_space
    assert_identical(space.low, np.array(least, dtype))
    assert_identical(space.high, np.array([limits.max, 2, 0, limits.max], dtype))
    envs.close()
    envs = INLINE(samplers(gym.spaces.Box(low[1:3], high[1:3]), 2))
    converted = wrappers.DtypeObservation(envs, dtype)
    shown, _ = converted.reset(seed=3)
    for _ in range(9):
        assert converted.observation_space.contains(shown)
        shown = converted.step(converted.action_space.sample())[0]
    converted.close()
