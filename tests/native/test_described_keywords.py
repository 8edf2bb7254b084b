"""The listed keywords and reset options are those of the environments, with their defaults."""

import copy
import inspect

import gymnasium as gym
import pytest
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.envs.registration import load_env_creator

import cartwheel
from cartwheel._cartwheel import native_envs
from cartwheel.native.keywords import (
    describe_keywords,
    describe_reset_options,
    names_of_keywords,
)
from tests.support.comparison import assert_identical
from tests.support.repetitions import times

IDS = [env_id for env_id, *_ in native_envs()]
WITH_GYMNASIUMS = [env_id for env_id in IDS if env_id in gym.registry]
#: Every option that the reset of some environment has.
RESET_OPTIONS = {"low", "high", "x_init", "y_init"}


def listed(env_id):
    return {keyword.name: keyword.default for keyword in describe_keywords(env_id)}


@pytest.mark.parametrize("env_id", IDS)
def test_the_listed_keywords_are_all_that_the_environment_takes(env_id):
    assert set(names_of_keywords(env_id)) == set(listed(env_id))


@pytest.mark.parametrize("env_id", WITH_GYMNASIUMS)
def test_the_listed_defaults_are_gymnasiums(env_id):
    spec = copy.deepcopy(gym.spec(env_id))
    signature = dict(inspect.signature(load_env_creator(spec.entry_point)).parameters)
    if "xml_file" in signature:  # the base class has more, and one is cartwheel's
        signature = {**inspect.signature(MujocoEnv).parameters, **signature}
        spec.kwargs["model_per_row"] = False
    theirs = {name: value.default for name, value in signature.items()} | spec.kwargs
    theirs = {name: theirs[name] for name in listed(env_id)}
    assert set(listed(env_id)) == set(theirs)
    for name, default in listed(env_id).items():  # Rust has lists for tuples, and its own numbers
        same = list(theirs[name]) if isinstance(default, list) else theirs[name]
        assert default == same, name


@pytest.mark.parametrize("env_id", IDS)
def test_every_keyword_and_option_has_a_text(env_id):
    for one in [*describe_keywords(env_id), *describe_reset_options(env_id)]:
        assert one.text.endswith("."), one.name


@pytest.mark.parametrize("env_id", IDS)
def test_a_listed_default_changes_nothing(env_id):
    plain = cartwheel.NativeVectorEnv(env_id, 2)
    given = cartwheel.NativeVectorEnv(env_id, 2, **listed(env_id))
    assert given.single_observation_space == plain.single_observation_space
    assert_identical(given.reset(seed=1), plain.reset(seed=1))
    plain.action_space.seed(1)
    for _ in range(times(8, with_full=30)):
        actions = plain.action_space.sample()
        assert_identical(given.step(actions), plain.step(actions))
    given.close()
    plain.close()


@pytest.mark.parametrize("env_id", IDS)
def test_the_listed_options_are_all_that_a_reset_takes(env_id):
    """An option that a reset does not have is ignored; one that it has cannot be text."""
    envs = cartwheel.NativeVectorEnv(env_id, 1)
    taken = set()
    for name in RESET_OPTIONS:
        try:
            envs.reset(options={name: "text"})
        except ValueError:  # each option is tried
            taken.add(name)
    assert {option.name for option in describe_reset_options(env_id)} == taken
    envs.close()


@pytest.mark.parametrize("env_id", IDS)
def test_listed_defaults_of_options_are_what_a_reset_without_options_uses(env_id):
    envs = cartwheel.NativeVectorEnv(env_id, 3)
    options = {option.name: option.default for option in describe_reset_options(env_id)}
    plain = envs.reset(seed=4)
    assert_identical(envs.reset(seed=4, options=options), plain)
    for name, default in options.items():
        other = default - 0.01 if name == "low" else default + 0.01
        changed, _ = envs.reset(seed=4, options={name: other})
        assert (changed != plain[0]).any(), f"{name} has no effect"
    envs.close()
