"""Wrappers take spaces with empty parts: dictionaries and tuples of nothing, empty boxes."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple

import cartwheel
from cartwheel.wrappers import (
    AutoresetAdapter,
    FilterObservation,
    FlattenAction,
    FlattenObservation,
    FrameStack,
    RecordMetrics,
    TransformObservation,
)
from tests.support.comparison import assert_identical
from tests.support.wrapping import D, N, S

STATE = Box(-1, 1, (2,), np.float32)
SPACES = {
    "dictionary": Dict(extra=Dict({}), state=STATE),
    "tuple": Tuple([Tuple([]), STATE]),
    "deep": Dict(extra=Dict(none=Tuple([Dict({})])), state=STATE),
    "no element": Dict(none=Box(-1, 1, (0,), np.float32), state=STATE),
    "text": Dict(extra=Tuple([]), state=STATE, word=Text(3)),
}


def env_fn(observations, actions=STATE):
    class Env(gym.Env):
        observation_space, action_space = observations, actions

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed, options=options)
            observations.seed(seed if seed is not None else 4)
            self.steps = 0
            return observations.sample(), {}

        def step(self, action):
            assert action in actions
            self.action = action
            self.steps += 1
            return observations.sample(), 1.0, self.steps == 2, False, {}

    return Env


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("mode", [N, S, "adapted"])
@pytest.mark.parametrize("executor", ["inline", "process"])
def test_episodes_end_under_every_wrapper(name, mode, executor):
    envs = cartwheel.VectorEnv(
        [env_fn(SPACES[name])] * 2,
        executor=executor,
        autoreset_mode=D if mode == "adapted" else mode,
    )
    if mode == "adapted":
        envs = AutoresetAdapter(envs, S)
    envs = RecordMetrics(TransformObservation(envs, lambda observations: observations))
    if name != "text":
        envs = FrameStack(envs, 2)
    envs.reset(seed=1)
    for _ in range(4):
        observations, *_ = envs.step(np.zeros((2, 2), np.float32))
        assert observations in envs.observation_space
    assert len(envs.finished()["return"]) >= 2
    envs.reset(options={"env_index": [1]})
    envs.step(np.zeros((1, 2), np.float32), [1])
    envs.close()


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("mode", [N, S])
def test_flat_observations_are_those_of_the_other_parts(name, mode):
    key = 1 if name == "tuple" else "state"
    envs = cartwheel.VectorEnv([env_fn(SPACES[name])] * 2, executor="inline", autoreset_mode=mode)
    flat = FlattenObservation(FilterObservation(envs, [key]))
    expected = flat.reset(seed=1)[0]
    whole = FlattenObservation(envs)
    shown, _ = whole.reset(seed=1)
    assert shown in whole.observation_space
    assert_identical(shown[:, :2].astype(np.float32), expected, "the state")
    for _ in range(3):
        assert whole.step(np.zeros((2, 2), np.float32))[0] in whole.observation_space
    envs.close()


@pytest.mark.parametrize("form", ["index", "onehot"])
def test_flat_actions_come_back_with_their_empty_parts(form):
    actions = Dict(extra=Dict({}), push=STATE, which=Tuple([Tuple([]), Discrete(3, start=1)]))
    envs = cartwheel.VectorEnv([env_fn(STATE, actions)] * 2, executor="inline")
    flat = FlattenAction(envs, form)
    flat.reset(seed=1)
    batch = envs.action_space.sample()
    flat.step(flat.flatten(batch))
    for row, env in enumerate(envs.envs):
        assert_identical(env.action["push"], batch["push"][row])
        assert env.action["which"] == ((), batch["which"][1][row])
        assert env.action["extra"] == {}
    flat.step(flat.action_space.sample())
    flat.close()


def test_a_space_of_nothing_is_refused():
    envs = cartwheel.VectorEnv([env_fn(Dict(none=Dict({})))] * 2, executor="inline")
    for wrap in (FlattenObservation, lambda envs: FrameStack(envs, 2)):
        with pytest.raises(TypeError, match="Dict"):
            wrap(envs)
    envs.close()
