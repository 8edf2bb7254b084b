"""Observations, rewards and flags that break a promise are named: key path, row, step, bounds."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from tests.testing.walk import Walk, assert_fails, assert_passes, walks


class TooFar(Walk):
    def observe(self):
        observation = super().observe()
        observation["pos"][1] = 41 if self.t == 3 else 0
        return observation


class NotANumber(Walk):
    def observe(self):
        observation = super().observe()
        observation["pos"][1] = np.nan if self.t == 3 else 0
        return observation


class TooWide(Walk):
    def observe(self):
        return super().observe() | {"pos": self.pos.astype(np.float64)}


class TooLong(Walk):
    def observe(self):
        return super().observe() | {"pos": np.zeros(3, np.float32)}


class Incomplete(Walk):
    def observe(self):
        return {"pos": self.pos.copy()}


class LateClock(Walk):
    def observe(self):
        return super().observe() | {"clock": 21 if self.t == 2 else 0}


class Infinite(Walk):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, np.inf if self.t == 4 else reward, *rest


class IntegerFlag(Walk):
    def step(self, action):
        observation, reward, terminated, *rest = super().step(action)
        return observation, reward, int(terminated), *rest


class TextAsReward(Walk):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, "1", *rest


@pytest.mark.parametrize(
    ("kind", "text", "remedy"),
    [
        (TooFar, r"observation\['pos'\]\[1\] in step \d is 41.0, outside of \[-40.0, 40", "wider"),
        (
            NotANumber,
            r"observation\['pos'\]\[1\] in step \d is nan, outside",
            "`observation_space`",
        ),
        (
            TooWide,
            r"observation\['pos'\] in `reset` is float64 of shape \(2,\), but .* float32",
            "",
        ),
        (TooLong, r"observation\['pos'\] in `reset` is float32 of shape \(3,\)", "dtype and shape"),
        (Incomplete, r"observation\['clock'\] in `reset` is missing", "`observation_space`"),
        (LateClock, r"observation\['clock'\] in step \d is 21, outside of Discrete\(21\)", "wider"),
        (Infinite, r"the reward of row \d in call 4 after the reset is inf", "division by zero"),
        (IntegerFlag, "terminated in step 1 is [01]", "bool(condition)"),
        (TextAsReward, "the reward in step 1 is '1'", "float"),
    ],
)
def test_values_outside_of_their_space_are_named(kind, text, remedy):
    assert_fails(walks(kind), "spaces", text, remedy)


class WrongFinals(cartwheel.VectorEnv):
    """Final observations have another dtype."""

    def step(self, actions, env_index=None):
        result = super().step(actions, env_index)
        for final in filter(None, result[4].get("final_obs", ())):
            final["pos"] = final["pos"].astype(np.float64)
        return result


def test_final_observations_are_named():
    envs = WrongFinals([Walk] * 3, executor="inline", autoreset_mode="same_step")
    text = r"observation\['pos'\] of row \d in call \d+ .*, in `final_obs`, is float64 of shape"
    assert_fails(envs, "spaces", text, "dtype")


class FarBatch(cartwheel.VectorEnv):
    """Its batches leave the bounds; the environments do not."""

    def step(self, actions, env_index=None):
        result = super().step(actions, env_index)
        result[0]["pos"][1] = 41
        return result


def test_batches_outside_of_their_bounds_are_named():
    envs = FarBatch([Walk] * 3, executor="inline")
    text = r"observation\['pos'\].* is 41.0, outside of \[-40.0, 40.0\]"
    assert_fails(envs, "spaces", text, "")


class Marked(gym.Env):
    """Observes its own bound."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, bound):
        self.observation_space = Box(0, bound, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return self.observation_space.high, {}

    def step(self, action):
        return self.observation_space.high, 0.0, bool(action), False, {}


def test_rows_may_have_bounds_of_their_own():
    env_fns = [partial(Marked, bound) for bound in (1, 2, 3)]
    assert_passes(
        cartwheel.VectorEnv(env_fns, executor="inline", observation_mode="different"), "spaces"
    )


def test_a_space_of_another_kind_is_named():
    class Vast(gym.Env):
        observation_space = Box(0, 1, (2, 2), np.float32)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed, options=options)
            return np.eye(2, dtype=np.float32), {}

        def step(self, _action):
            return np.full((2, 2), 2, np.float32), 0.0, False, False, {}

    text = r"observation\[0, 0\] in step 1 is 2.0, outside of \[0.0, 1.0\]"
    assert_fails(walks(Vast), "spaces", text, "wider")
