"""An observation that does not fit its space: the error names the part, however deep it is."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from tests.support.comparison import text_of

BOX = Box(-1, 1, (2,), np.float32)
SPACE = Dict(vec=BOX, deep=Dict(number=Discrete(3), pair=Tuple([BOX, Discrete(2)])))


def fitting():
    pair = (np.zeros(2, np.float32), 1)
    return {"vec": np.zeros(2, np.float32), "deep": {"number": 1, "pair": pair}}


class Shows(gym.Env):
    """Shows one observation at every reset, and one that fits in no step."""

    observation_space = SPACE
    action_space = Discrete(2)

    def __init__(self, change):
        self.change = change

    def reset(self, **_):
        return fitting(), {}

    def step(self, _):
        shown = fitting()
        self.change(shown)
        return shown, 0.0, False, False, {}


def without(shown):
    del shown["vec"]


def of_another_shape(shown):
    shown["vec"] = np.zeros(3, np.float32)


def nothing(shown):
    shown["vec"] = None


def of_another_dtype(shown):
    shown["deep"]["number"] = 1.5


def deep_shape(shown):
    shown["deep"]["pair"] = (np.zeros(5, np.float32), 1)


def too_short(shown):
    shown["deep"]["pair"] = (np.zeros(2, np.float32),)


CASES = [
    (without, KeyError, "'vec'", "['vec']"),
    (of_another_shape, ValueError, "the observation has shape", "['vec']"),
    (nothing, ValueError, "its space has [2], got <class 'NoneType'>", "['vec']"),
    (of_another_dtype, TypeError, "has dtype float64, its space has int64", "['deep']['number']"),
    (deep_shape, ValueError, "the observation has shape", "['deep']['pair'][0]"),
    (too_short, IndexError, "tuple index out of range", "['deep']['pair'][1]"),
]


def test_the_error_names_the_part(build):
    envs = build([partial(Shows, lambda _: None)] * 2)
    for change, kind, text, path in CASES:
        envs.apply(setattr, "change", change, env_index=[1])
        envs.reset(seed=1)
        with pytest.raises(kind) as refused:
            envs.step([0, 0])
        for part in (text, f"at observation{path} of the space", "row 1"):
            assert part in text_of(refused.value)
    envs.reset(seed=1)


def test_an_observation_that_is_one_array_has_no_part(build):
    class Plain(Shows):
        observation_space = BOX

        def reset(self, **_):
            return np.zeros(3, np.float32), {}

    envs = build([partial(Plain, None)])
    with pytest.raises(ValueError, match="the observation has shape") as refused:
        envs.reset()
    assert "at observation" not in text_of(refused.value)
