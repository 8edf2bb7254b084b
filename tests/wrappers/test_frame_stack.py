"""``FrameStack`` equals Gymnasium's in single environments, to the bit."""

import functools
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.wrappers import FrameStackObservation

import cartwheel
from cartwheel.wrappers import FrameStack
from tests.support.comparison import assert_identical
from tests.support.environments import SamplingEnv
from tests.support.wrapping import (
    SCRIPT,
    Builds,
    Script,
    alone,
    assert_traces,
    build,
    drive,
    script_of,
    settings_of,
)

ENVIRONMENTS = ["pole", "one step", "blackjack", "nested", "images", "failing"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_stacks_are_those_of_single_environments(environment):
    script = script_of(environment)
    expected = {
        padding: alone(
            environment,
            script,
            lambda env, padding=padding: FrameStackObservation(env, 3, padding_type=padding),
        )
        for padding in ("reset", "zero")
    }
    with Builds() as built:
        for number, (kind, mode, way, keywords) in enumerate(settings_of(environment)):
            padding = ("reset", "zero")[number % 2]
            envs = FrameStack(built(kind, environment, mode, **keywords), 3, padding_type=padding)
            traces = drive(envs, script, way, close=False)
            assert_traces(traces, expected[padding])


def test_a_stack_may_have_one_frame_or_be_longer_than_an_episode():
    for k in (1, 20):
        expected = alone("pole", SCRIPT, lambda env, k=k: FrameStackObservation(env, k))
        envs = FrameStack(build("native", "pole", num_envs=3), k)
        assert_traces(drive(envs, SCRIPT), expected)


SPACES: dict[str, gym.Space] = {
    "bounds": Box(np.array([1, -5], np.float32), np.array([2, -4], np.float32)),
    "bytes": Box(0, 255, (4, 3), np.uint8),
    "none": Box(0, 1, (0,), np.float64),
    "number": Discrete(5, start=-2),
    "numbers": MultiDiscrete([3, 4]),
    "bits": MultiBinary((2, 3)),
    "long": Box(-1, 1, (300,), np.float64),
}
SPACES["all"] = Dict({"a": Tuple((SPACES["bounds"], SPACES["number"])), "b": SPACES["bits"]})


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("padding", ["reset", "zero"])
def test_every_space_of_fixed_shape_is_stacked_as_by_gymnasium(name, padding):
    make = functools.partial(SamplingEnv, SPACES[name], length=3)
    single = FrameStackObservation(make(), 4, padding_type=padding)
    envs = FrameStack(cartwheel.VectorEnv([make] * 2, executor="inline"), 4, padding_type=padding)
    assert envs.single_observation_space == single.observation_space
    script = Script(steps=8, resets={(1, 2): 9})
    expected = alone(
        make, script, lambda env: FrameStackObservation(env, 4, padding_type=padding), 2
    )
    assert_traces(drive(envs, script), expected)


def test_a_space_without_fixed_shape_is_refused():
    space = Dict({"image": SPACES["bytes"], "text": Text(5)})
    envs = cartwheel.VectorEnv([lambda: SamplingEnv(space)], executor="inline")
    with pytest.raises(TypeError, match="`observations/text` cannot be stacked, because Text"):
        FrameStack(envs, 2)
    envs.close()


@pytest.mark.parametrize("space", [Dict(), Dict({"nothing": Tuple(())})], ids=["flat", "nested"])
def test_a_space_without_arrays_is_refused(space):
    envs = cartwheel.VectorEnv([lambda: SamplingEnv(space)], executor="inline")
    with pytest.raises(TypeError, match=f"{re.escape(str(space))} have no array"):
        FrameStack(envs, 2)
    envs.close()


def test_wrong_arguments_are_refused():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    for size in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match=f"`stack_size` must be .* integer, got {size}"):
            FrameStack(envs, size)
    with pytest.raises(ValueError, match="`padding_type` must be one of 'reset', 'zero', got 'on"):
        FrameStack(envs, 2, padding_type="ones")
    envs.close()


def test_a_state_continues_stacks():
    first, second = (FrameStack(cartwheel.NativeVectorEnv("CartPole-v1", 3), 4) for _ in range(2))
    for envs in (first, second):
        envs.reset(seed=1)
    for _ in range(6):
        shown = first.step(np.ones(3, int))[0]
    state = first.get_own_state()
    np.testing.assert_array_equal(state["stacks"]["observations"], shown)
    second.set_own_state(state)
    mask = {"reset_mask": np.array([False, True, False])}
    again = second.reset(seed=5, options=mask)[0]
    assert_identical(again[[0, 2]], shown[[0, 2]], "stacks that were set")
    text = re.escape("`state['stacks']['observations']` must be an array float32 (3, 4, 4)")
    with pytest.raises(ValueError, match=text):
        second.set_own_state({"stacks": {"observations": shown[:, :3]}})
    first.close()
    second.close()
