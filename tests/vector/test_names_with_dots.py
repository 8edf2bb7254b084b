"""`get_attr`, `set_attr` and `call` reach attributes of attributes: ``"sim.dt"``."""

import re
from functools import partial
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

import cartwheel
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import TranscriptEnv


class Sim:
    """Has slots, a property and a method."""

    __slots__ = ("dt", "options")

    def __init__(self, dt):
        self.dt, self.options = dt, SimpleNamespace(gravity=np.full(3, dt), depth=2)

    @property
    def rate(self):
        return 1 / self.dt

    @property
    def broken(self):
        raise AttributeError("the sensor has no cable")

    def forward(self, *steps, scale=1):
        return self.dt * scale * sum(steps)

    def render(self):
        return self.dt

    def reset(self):
        return "reset"


class SimEnv(TranscriptEnv):
    """Has a simulation, and an attribute with a dot in its name."""

    def __init__(self, row):
        super().__init__(length=9)
        self.sim = Sim(row + 1)
        setattr(self, "literal.name", row)


def wrapped(row):
    return RecordEpisodeStatistics(TimeLimit(SimEnv(row), 50))


@pytest.fixture
def envs(build):
    return build([partial(wrapped, row) for row in range(3)])


def test_names_with_dots_are_read_through_wrappers(envs):
    assert_identical(envs.get_attr("sim.dt"), (1, 2, 3))
    assert_identical(envs.get_attr("sim.rate", env_index=[1]), (1 / 2,))
    assert_identical(envs.get_attr("sim.options.gravity"), tuple(np.full(3, n) for n in (1, 2, 3)))
    assert_identical(envs.get_attr("env.sim.dt"), (1, 2, 3))
    assert_identical(envs.get_attr("unwrapped.sim.dt"), (1, 2, 3))


def test_names_with_dots_are_set_where_they_are(envs):
    envs.set_attr("sim.dt", [4, 5], env_index=[2, 0])
    envs.set_attr("sim.options.depth", 8)
    envs.set_attr("env._max_episode_steps", 2)
    assert_identical(envs.get_attr("sim.dt"), (5, 2, 4))
    assert_identical(envs.apply(lambda env: env.unwrapped.sim.options.depth), (8, 8, 8))
    envs.reset()
    envs.step([1, 1, 1])
    assert envs.step([1, 1, 1])[3].all()


def test_methods_of_attributes_are_called(envs):
    assert_identical(envs.call("sim.forward", 1, 2), (3, 6, 9))
    assert_identical(envs.call("sim.forward", 2, scale=10, env_index=[2]), (60,))
    assert_identical(envs.call("sim.render"), (1, 2, 3))
    assert_identical(envs.call("sim.reset"), ("reset",) * 3)
    envs.call_async("sim.dt")
    assert_identical(envs.call_wait(), (1, 2, 3))


def test_an_attribute_whose_own_name_has_dots_comes_first(envs):
    assert_identical(envs.get_attr("literal.name"), (0, 1, 2))
    envs.set_attr("literal.name", 7)
    assert_identical(envs.get_attr("literal.name"), (7, 7, 7))


MISSING = {
    "simm.dt": "'simm.dt': RecordEpisodeStatistics has no attribute 'simm': did you mean 'sim'?",
    "sim.ratt": "'sim.ratt': Sim has no attribute 'ratt': did you mean 'rate'?",
    "sim.option.depth": "has no attribute 'option': did you mean 'options'?",
    "sim.options.xyz": "'sim.options.xyz': SimpleNamespace has no attribute 'xyz'",
    "sim.dt.": "'sim.dt.': int has no attribute ''",
    ".sim": "has no attribute ''",
}


def test_an_error_names_the_part_that_is_missing(envs):
    for call in (envs.get_attr, envs.call, lambda name: envs.set_attr(name, 1)):
        for name, text in MISSING.items():
            with pytest.raises(AttributeError, match=re.escape(text)) as failure:
                call(name)
            assert_names_row(failure.value, 0)
    assert_identical(envs.get_attr("sim.dt"), (1, 2, 3))


def test_an_attribute_error_within_a_property_is_passed_on(envs):
    with pytest.raises(AttributeError, match="the sensor has no cable"):
        envs.get_attr("sim.broken")


def test_methods_of_an_inner_environment_are_refused_like_its_own(envs):
    for name in ("unwrapped.step", "env.reset", "env.env.close"):
        last = name.rpartition(".")[2]
        text = f"Trying to call function `{name}` with `call`, use `{last}` directly instead."
        with pytest.raises(ValueError, match=re.escape(text)):
            envs.call(name)


def test_names_with_dots_go_through_wrappers_around_the_vector_environment(envs):
    outer = cartwheel.wrappers.FrameStack(cartwheel.wrappers.ClipReward(envs, 0, 1), 2)
    outer.set_attr("sim.dt", 9, env_index=[1])
    assert_identical(outer.get_attr("sim.dt"), (1, 9, 3))
    assert_identical(outer.call("sim.forward", 1), (1, 9, 3))


def test_gymnasiums_sync_preset_reads_them_too():
    envs = cartwheel.SyncVectorEnv([partial(wrapped, row) for row in range(2)])
    assert_identical(envs.get_attr("sim.dt"), (1, 2))
    assert isinstance(envs.envs[0], gym.Wrapper)
    envs.close()
