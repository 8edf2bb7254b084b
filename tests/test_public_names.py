"""What ``import cartwheel`` offers: documented names and no default seed."""

import importlib.metadata
import inspect
from typing import get_args

import pytest

import cartwheel
from cartwheel import choices


def test_the_version_equals_that_of_the_installed_wheel():
    assert cartwheel.__version__ == importlib.metadata.version("cartwheel")


@pytest.mark.parametrize("name", [name for name in cartwheel.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(cartwheel, name))


def test_help_on_vector_env_begins_with_an_example():
    doc = inspect.getdoc(cartwheel.VectorEnv)
    assert doc.split("\n\n")[1].startswith("Example:")


def test_every_vector_environment_has_the_same_base_class():
    for each in (cartwheel.VectorEnv, cartwheel.NativeVectorEnv, cartwheel.AsyncVectorEnv):
        assert issubclass(each, cartwheel.PoolVectorEnv)


def test_the_default_seed_is_none():
    for function in (cartwheel.evaluate, cartwheel.Collector, cartwheel.VectorEnv.reset):
        assert inspect.signature(function).parameters["seed"].default is None


@pytest.mark.parametrize("name", get_args(choices.ModeName))
def test_every_mode_name_in_the_types_is_accepted(name):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode=name)
    assert name.lower().replace("_", "") == envs.autoreset_mode.value.lower()
    envs.close()


def test_a_value_outside_the_types_is_refused_with_the_allowed_values():
    with pytest.raises(ValueError, match="must be one of 'raise', 'freeze', got 'wait'"):
        cartwheel.NativeVectorEnv("CartPole-v1", 2, on_done="wait")
